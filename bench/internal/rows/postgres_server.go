//go:build !nopeers

package rows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/partita-go/partita/bench/internal/measure"
	"github.com/partita-go/partita/bench/internal/process"
	"github.com/partita-go/partita/bench/internal/usage"
)

// postgresServer is a server of its own, with its data in a directory. It listens
// on a Unix socket only.
type postgresServer struct {
	process   *process.Server
	dataDir   string
	socketDir string // its name must be short
}

const (
	postgresUser = "bench"
	postgresPort = 5432 // part of the socket's name
)

// postgresSettings are what the server runs with. Every commit is synced before
// it is acknowledged; nothing else on one server needs more of the log than the
// minimum.
var postgresSettings = map[string]string{
	"listen_addresses":   "",
	"fsync":              "on",
	"synchronous_commit": "on",
	"full_page_writes":   "on",
	"wal_level":          "minimal",
	"max_wal_senders":    "0",
	"shared_buffers":     "1GB",
	"wal_buffers":        "16MB",
	"max_wal_size":       "8GB",
	"checkpoint_timeout": "15min",
	"jit":                "off",
}

const postgresNote = "fsync, synchronous_commit and full_page_writes on, shared_buffers 1 GB, wal_level minimal"

// startPostgres makes a database cluster in a directory and starts its server.
func startPostgres(ctx context.Context, dir string, callers int) (*postgresServer, error) {
	bin, err := postgresBin(ctx)
	if err != nil {
		return nil, err
	}
	as, err := serverAccount(dir)
	if err != nil {
		return nil, err
	}
	s := &postgresServer{dataDir: filepath.Join(dir, "data")}
	if s.socketDir, err = os.MkdirTemp("", "bench-pg-"); err != nil {
		return nil, err
	}
	if err := s.start(ctx, bin, as, callers); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.socketDir))
	}
	return s, nil
}

func (s *postgresServer) start(ctx context.Context, bin string, as account, callers int) error {
	if err := as.own(s.socketDir); err != nil {
		return err
	}
	initdb := as.command(ctx, filepath.Join(bin, "initdb"), "-D", s.dataDir, "-U", postgresUser, "-A", "trust", "-E", "UTF8", "--no-locale")
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	args := []string{"-D", s.dataDir, "-k", s.socketDir, "-p", fmt.Sprint(postgresPort), "-c", fmt.Sprintf("max_connections=%d", callers+8)}
	for name, value := range postgresSettings {
		args = append(args, "-c", name+"="+value)
	}
	// The server outlives the context of the setup.
	command := as.command(context.WithoutCancel(ctx), filepath.Join(bin, "postgres"), args...)
	var err error
	if s.process, err = process.Start(command, nil); err != nil {
		return err
	}
	err = s.process.WaitReady(ctx, func(ctx context.Context) error {
		conn, err := s.connect(ctx)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	if err != nil {
		return errors.Join(err, s.stop(ctx))
	}
	return nil
}

func (s *postgresServer) connect(ctx context.Context) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("host=%s port=%d user=%s dbname=postgres", s.socketDir, postgresPort, postgresUser))
}

// stop asks for a fast shutdown.
func (s *postgresServer) stop(ctx context.Context) error {
	return s.process.Stop(ctx, os.Interrupt)
}

func (s *postgresServer) sizes() ([]usage.Size, error) {
	var sizes []usage.Size
	for _, name := range []string{"base", "pg_wal"} {
		size, err := usage.SizeOf(filepath.Join(s.dataDir, name))
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// postgresBin returns the directory of the server's programs: that of the initdb
// in the path, or the one that pg_config names, or the newest one where Debian
// puts them.
func postgresBin(ctx context.Context) (string, error) {
	var dirs []string
	if initdb, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(initdb))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	debian, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	slices.Reverse(debian)
	dirs = append(dirs, debian...)
	for _, dir := range dirs {
		if executable(filepath.Join(dir, "initdb")) && executable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("%w: no PostgreSQL server (initdb and postgres) is installed; looked in the path and in %q", measure.ErrUnavailable, dirs)
}

func executable(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
