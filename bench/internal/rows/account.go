//go:build !nopeers

package rows

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/partita-go/partita/bench/internal/measure"
)

// account is whom a server runs as. Its zero value is whoever runs this program.
type account struct {
	uid, gid int
}

// serverAccount returns an account that PostgreSQL agrees to run as, which root
// is not, and gives it a directory.
func serverAccount(dir string) (account, error) {
	if os.Geteuid() != 0 {
		return account{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		known, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(known.Uid)
		if err != nil {
			return account{}, err
		}
		gid, err := strconv.Atoi(known.Gid)
		if err != nil {
			return account{}, err
		}
		a := account{uid: uid, gid: gid}
		if err := reachable(dir); err != nil {
			return account{}, err
		}
		return a, a.own(dir)
	}
	return account{}, fmt.Errorf("%w: root cannot run PostgreSQL, and there is no account postgres or nobody", measure.ErrUnavailable)
}

// reachable makes sure that every account can go to a directory.
func reachable(dir string) error {
	for parent := filepath.Dir(dir); ; parent = filepath.Dir(parent) {
		info, err := os.Stat(parent)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s: got mode %v, want one that lets the account of the server pass (or choose another directory)", parent, info.Mode())
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
}

// own gives the account a directory.
func (a account) own(dir string) error {
	if a == (account{}) {
		return nil
	}
	return os.Chown(dir, a.uid, a.gid)
}

// command returns a command that runs as the account.
func (a account) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, name, args...) //nolint:gosec // a server that was looked up
	if a != (account{}) {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}}
		command.Dir = "/"
	}
	return command
}
