package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/partita/internal/serve"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// source is where a command finds a store: in a directory, which a server may have open, or at a server.
type source struct{ dir, url, tokenFile string }

// sourceFlags defines those that say where the store is.
func sourceFlags(c *cobra.Command) *source {
	s, set := new(source), c.Flags()
	set.StringVar(&s.dir, "db", "", "the store's directory, `DIR`; a server that has it open is asked")
	set.StringVar(&s.url, "url", "", "the `URL` of a server that has the store open")
	set.StringVar(&s.tokenFile, "token-file", "", "`FILE` of the bearer token for --url; or it is in the environment, as "+tokenVariable)
	return s
}

// sourceUse is what the usage line of such a command says.
const sourceUse = "{--db DIR | --url URL}"

func (s *source) check() error {
	switch {
	case (s.dir == "") == (s.url == ""):
		return cli.WrongUsage("want either --db or --url")
	case s.dir != "" && s.tokenFile != "":
		return cli.WrongUsage("--token-file goes with --url")
	}
	return nil
}

// name is what errors and results call the store.
func (s *source) name() string { return s.dir + s.url }

// server returns the server that has the store open, nil if none has that answers in its directory.
func (s *source) server(ctx context.Context) (*serverKeeper, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.url == "" {
		return serverOf(ctx, s.dir)
	}
	token, err := readToken(s.tokenFile)
	if err != nil {
		return nil, err
	}
	return newServerKeeper(s.url, token)
}

// answerOf returns what the server answers that has the store open, or what look finds if there is none.
func answerOf[R any](ctx context.Context, s *source, operation string, values url.Values, look func() (*R, error)) (*R, error) {
	server, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	if server == nil {
		return look()
	}
	result := new(R)
	err = server.answer(ctx, operation, values, result)
	return result, errors.Join(err, server.close())
}

// serverOf returns the server that answers at the socket of a store's directory, nil if none does. A socket that a
// server has left that was killed answers nobody.
func serverOf(ctx context.Context, dir string) (*serverKeeper, error) {
	path, err := serve.SocketPath(dir)
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // then there is no server
	}
	var dialer net.Dialer
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.DialContext(ctx, "unix", path) }
	c, err := dial(ctx, "", "")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENOTSOCK):
		return nil, nil //nolint:nilnil // nobody listens
	case err != nil:
		return nil, fmt.Errorf("%s: a server has the store open, and cannot be asked: %w", dir, err)
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	k, err := newServerKeeper("http://localhost", "")
	if err == nil {
		k.client.Transport = &http.Transport{DialContext: dial}
		k.place = dir
	}
	return k, err
}

// copied makes a copy of what a server has open, and returns its directory. It is made in a directory, that of temporary
// files if that is "", and removed by remove.
func (k *serverKeeper) copied(ctx context.Context, in string, c *console.Console) (dir string, remove func() error, err error) {
	temporary, err := os.MkdirTemp(in, "partita-copy-")
	if err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(temporary) }
	dir = filepath.Join(temporary, "copy")
	if _, err := k.backup(ctx, dir, bolt.CopyOptions{SkipVerify: true, Progress: showCopy(c)}); err != nil {
		c.Done()
		return "", nil, errors.Join(err, remove())
	}
	return dir, remove, nil
}

// held returns an error of a command that cannot ask a server for what it wants: if one has the store of a directory
// open, the error says which, and what to do.
func held(ctx context.Context, dir string, err error, remedy string) error {
	if !errors.Is(err, storage.ErrLocked) && !errors.Is(err, syscall.EADDRINUSE) {
		return about(dir, err)
	}
	server, asked := serverOf(ctx, dir)
	if asked != nil || server == nil {
		return about(dir, err)
	}
	var s serve.Served
	asked = errors.Join(server.answer(ctx, serve.ServerOperation, nil, &s), server.close())
	if asked != nil {
		return errors.Join(about(dir, err), asked)
	}
	return fmt.Errorf("%s: %w: process %d serves it, at %s. %s", dir, err, s.PID, s.URL, remedy)
}

// howToAsk says how a process is asked that has a store open and does not answer in its directory.
func howToAsk(dir string) string {
	if _, err := serve.SocketPath(dir); err != nil {
		return fmt.Sprintf("If it serves HTTP, ask it where a command has --url (%v)", err)
	}
	return "If it is partita serve, it is still opening the store, or stops: try again. If it serves HTTP, ask it where a command has --url. Else stop it, or let it make a backup (bolt.Store.Backup)"
}

// noEvent is the error of every command that is asked about a workspace which has no event: a number that was mistyped must
// not look like a tenant without events.
func noEvent(ws messages.WSID) error {
	return fmt.Errorf("%w: workspace %d has no event", partition.ErrNoEvent, ws)
}

// checkWorkspaces returns an error unless each workspace has an event.
func checkWorkspaces(ctx context.Context, s reader, all ...messages.WSID) error {
	for _, ws := range all {
		next, stop := iter.Pull2(s.WLogWithLSN(ctx, ws, 1))
		_, _, there := next() // if it is damaged, that is told by whoever wants to read it
		stop()
		if !there {
			return noEvent(ws)
		}
	}
	return nil
}
