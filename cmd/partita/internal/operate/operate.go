// Package operate is the operator's tool behind its main function. Each command has its own file, but for bench and
// version, which are in packages of these names. What they do is done by package bolt, for programs to call as well.
//
// No command but serve and subscriptions changes a byte of the store that it reads, and
// subscriptions changes subscriptions.db alone.
package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/partita/internal/bench"
	"github.com/partita-go/partita/cmd/partita/internal/version"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

// Exit statuses.
const (
	exitFine  = cli.Fine
	exitFault = cli.Failed
	exitBlind = cli.Wrong
)

// Run does what the arguments say, without the program's name, and returns the exit
// status: 0 if all is fine, 1 if the store has faults, 2 if it could not look or do it, or the
// arguments are wrong.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := tool()
	return p.Run(ctx, args, cli.Streams{In: stdin, Out: stdout, Err: stderr})
}

// variables are what the names of variables of the environment begin with.
const variables = "PARTITA"

// tool returns the program. It is used once.
func tool() *cli.Program { return &cli.Program{Root: command(), Exits: exits, Status: status} }

// command returns what the program can do.
func command() *cobra.Command {
	c := &cobra.Command{Use: "partita COMMAND", Version: version.String(), Short: "Look after a store", Long: `Partita looks after a store. No command but serve and subscriptions changes the
store that it reads. What partita serve has open is asked of that server, where
a command has --url. Else nobody may have it open for writing meanwhile: a
running process is told by its lock.`}
	c.AddCommand(initCommand(), verifyCommand(), inspectCommand(), logCommand(), numbersCommand(), backupCommand(), restoreCommand(), compactCommand(),
		serveCommand(), configCommand(), subscriptionsCommand(), exportCommand(), importCommand(), dumpsCommand(), traceCommand(), healthCommand(), statusCommand(), clusterCommand(),
		bench.Command(), version.Command(), manCommand())
	cli.TakeVariables(c, variables)
	return c
}

const exits = `Exit status: 0 fine; 1 the store has faults, or nodes differ; 2 it could not
look, or not do what was asked: the store is locked, missing, foreign, too
damaged, of an unknown format, the server has refused; it was interrupted; or
wrong usage; 3 a second SIGINT or SIGTERM has ended it at once. A server that
was stopped ends with 0.`

func status(err error) int {
	if errors.Is(err, verify.ErrFaults) || errors.Is(err, errDiffer) {
		return exitFault
	}
	return exitBlind
}

// about says which store an error is about, and what to do about a lock.
func about(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrLocked):
		return fmt.Errorf("%s: %w: a running process has it open, and does not answer. %s", dir, err, howToAsk(dir))
	case errors.Is(err, bolt.ErrNoState):
		return fmt.Errorf("%s: %w, and log.db alone is not enough for this. Start the application on it once: that rebuilds the file. Or make a new store of it: partita restore --from %s --to NEW", dir, bolt.ErrNoState, dir)
	case strings.Contains(err.Error(), dir):
		return err
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// open opens a store to read it.
func open(ctx context.Context, dir string) (*bolt.Store, error) {
	s, err := bolt.OpenExisting(ctx, dir, bolt.Options{ReadOnly: true})
	return s, about(dir, err)
}

// reader reads logs: a store, or what is left of one.
type reader interface {
	Descriptor() messages.Descriptor
	LogWithLSN(ctx context.Context, from messages.LSN) iter.Seq2[bolt.LoggedEvent, error]
	PLogWithLSN(ctx context.Context, id messages.PartitionID, from messages.PLogOffset) iter.Seq2[bolt.LoggedEvent, error]
	WLogWithLSN(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[bolt.LoggedEvent, error]
	Inspect(ctx context.Context) (bolt.Inspection, error)
}

// openReader opens a store to read its logs. If state.db is missing it says so, and reads
// log.db alone.
func openReader(ctx context.Context, dir string, notes io.Writer) (r reader, closeIt func() error, err error) {
	s, err := bolt.OpenExisting(ctx, dir, bolt.Options{ReadOnly: true})
	if !errors.Is(err, bolt.ErrNoState) {
		return s, func() error { return closeStore(s) }, about(dir, err)
	}
	l, err := bolt.OpenLog(ctx, dir)
	if err != nil {
		return nil, nil, about(dir, err)
	}
	_, err = fmt.Fprintf(notes, "partita: %s: state.db is missing: this is log.db alone. The next start of the application rebuilds the file\n", dir)
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return l, l.Close, nil
}

// closeStore closes a store that was only read: nothing can wait.
func closeStore(s *bolt.Store) error { return s.Close(context.Background()) }
