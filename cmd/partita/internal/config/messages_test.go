package config

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unmarked are messages that no interface of package messages has, since they answer others.
var unmarked = []string{"CommandDone", "Held", "LaneStopped", "Reconfigured", "StatusReport", "Stopped", "Tried"}

// ofSystem are those of the actor system.
var ofSystem = strings.Fields("Failure PoisonPill Restart Restarting ResumeMailbox Started Stop Stopped Stopping SuspendMailbox Terminated Unwatch Watch")

// TestMessageNames: all that package messages has are known, and no others.
func TestMessageNames(t *testing.T) {
	want := slices.Concat(unmarked, ofSystem)
	files, err := filepath.Glob("../../../../messages/*.go")
	check(t, err)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		check(t, err)
		for _, d := range file.Decls {
			f, isFunc := d.(*ast.FuncDecl)
			if !isFunc || f.Recv == nil || !strings.HasSuffix(f.Name.Name, "Message") && f.Name.Name != "sequencerReply" {
				continue
			}
			if pointer, ok := f.Recv.List[0].Type.(*ast.StarExpr); ok {
				want = append(want, pointer.X.(*ast.Ident).Name)
			}
		}
	}
	got := slices.Sorted(slices.Values(messageNames))
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(got, want) || len(want) < 60 {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestUnknownMessages: a message that there is not is refused, wherever it is named, with the one that was meant.
func TestUnknownMessages(t *testing.T) {
	for document, want := range map[string]string{
		`{"dump": "x", "dump_messages": ["Append", "Apend"]}`:                                         `the document: dump_messages: got "Apend", want the name of a message: the nearest is Append`,
		`{"dump": "x", "dump_messages": ["timerfired"]}`:                                              `the nearest is TimerFired`,
		`{"dump": "x", "dump_messages": [""]}`:                                                        `dump_messages: got "", want`,
		`{"dump": "x", "groups": {"lane": {"dumping": {"messages": ["RetryFired", "HandelBatch"]}}}}`: `the document: groups.lane.dumping.messages: got "HandelBatch", want the name of a message: the nearest is HandleBatch`,
	} {
		_, err := NewSource("", nothing, nil).LoadDocument([]byte(document))
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), `"Append"`) {
			t.Errorf("%s: got %v, want %s", document, err, want)
		}
	}
}

// TestTwice: a name that is in an object twice is refused, in all kinds of files, wherever it is.
func TestTwice(t *testing.T) {
	for name, contents := range map[string][]string{
		"c.json": {`{"log_rate": 5, "log_rate": 6}`, `{"settings": {"flush_interval": "1s", "flush_interval": "2s"}}`, `{"settings": {}, "settings": {}}`},
		"c.toml": {"log_rate = 5\nlog_rate = 6\n", "[settings]\n[settings]\n"},
		"c.yaml": {"log_rate: 5\nlog_rate: 6\n"},
	} {
		for _, content := range contents {
			if _, err := NewSource(descriptorFile(t, name, content), nothing, nil).Load(); !errors.Is(err, ErrConfig) {
				t.Errorf("%s: got %v of %s", name, err, content)
			}
		}
	}
	_, err := NewSource("", nothing, nil).LoadDocument([]byte(`{"settings": {"flush_interval": "1s", "flush_interval": "2s"}}`))
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "the document: settings.flush_interval is there twice") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadDescriptor(descriptorFile(t, "a.json", `{"application": "a", "partitions": 1, "kinds": [{"kind": 1, "name": "x", "name": "y"}]}`)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "kinds.0.name is there twice") {
		t.Errorf("got %v", err)
	}
	if _, err := NewSource("", nothing, nil).LoadDocument([]byte(`{"settings": {"flush_interval": "1s"}, "store": {}, "groups": {"lane": {"telemetry": {"keys": true}}}, "metrics_keys": ["lane", "lane"]}`)); err != nil {
		t.Errorf("got %v", err)
	}
}
