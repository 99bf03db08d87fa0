package serve

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/partita-go/partita/storage/replog/raftlog/keys"
)

// TestWrongNodes are refused before anything is opened, with what is wanted.
func TestWrongNodes(t *testing.T) {
	authority := keys.NewAuthority(t)
	cert, key, ca := authority.Files(t, t.TempDir(), "n1")
	empty := filepath.Join(t.TempDir(), "empty")
	check(t, os.WriteFile(empty, nil, 0o600))
	peers := []string{"n1=127.0.0.1:1", "n2=127.0.0.1:2"}
	for name, test := range map[string]struct {
		node Node
		want string
	}{
		"no name":      {Node{Peers: peers}, "--node"},
		"only shards":  {Node{Shards: 2}, "--node"},
		"no peers":     {Node{Name: "n1"}, `node "n1" among them`},
		"no address":   {Node{Name: "n1", Peers: []string{"n1"}}, "NAME=HOST:PORT"},
		"twice":        {Node{Name: "n1", Peers: append(peers, "n1=127.0.0.1:3")}, "twice"},
		"not a peer":   {Node{Name: "n9", Peers: peers}, `node "n9" among them`},
		"no key":       {Node{Name: "n1", Peers: peers, CertFile: cert, CAFile: ca}, "got some of them"},
		"no authority": {Node{Name: "n1", Peers: peers, CertFile: cert, KeyFile: key, CAFile: empty}, "no certificate"},
		"wrong files":  {Node{Name: "n1", Peers: peers, CertFile: key, KeyFile: cert, CAFile: ca}, "certificate between nodes"},
		"lost file":    {Node{Name: "n1", Peers: peers, CertFile: cert, KeyFile: key, CAFile: empty + "-lost"}, "authority of nodes"},
	} {
		if _, _, err := test.node.check("application.toml"); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	good := Node{Name: "n1", Peers: peers, CertFile: cert, KeyFile: key, CAFile: ca}
	if _, _, err := good.check(""); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "--descriptor") {
		t.Errorf("no descriptor: got %v", err)
	}
	all, secure, err := good.check("application.toml")
	if err != nil || len(all) != 2 || secure == nil || len(secure.Certificates) != 1 {
		t.Errorf("got %v, %v, %v", all, secure, err)
	}
	if all, secure, err := (&Node{}).check(""); all != nil || secure != nil || err != nil {
		t.Errorf("none: got %v, %v, %v", all, secure, err)
	}
}
