// Package operate is the operator's tool behind its main function. Each command has its
// own file; what they do is done by package bolt, for programs to call as well.
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

	"github.com/partita-go/partita/cmd/internal/cli"
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
	p := cli.Program{Name: "partita", Usage: usage, Version: version, Status: status, Commands: append([]cli.Command{
		{Name: "verify", Flags: verifyFlags},
		{Name: "inspect", Flags: inspectFlags},
		{Name: "log", Flags: logFlags},
		{Name: "numbers", Flags: numbersFlags},
		{Name: "backup", Flags: backupFlags},
		{Name: "restore", Flags: restoreFlags},
		{Name: "compact", Flags: compactFlags},
		{Name: "serve", Flags: serveFlags},
	}, subscriptionsCommands()...)}
	return p.Run(ctx, joinVerb(args), cli.Streams{In: stdin, Out: stdout, Err: stderr})
}

func status(err error) int {
	if errors.Is(err, verify.ErrFaults) {
		return exitFault
	}
	return exitBlind
}

const usage = `Partita looks after a store. No command but serve and subscriptions changes the
store that it reads. Nobody may have it open for writing meanwhile: a running
process is told by its lock.

  partita verify --db DIR       check all that the files can show, and say
                                what to do about each fault
    --max-faults N              how many faults are told in words (default 100)
    --max-memory MiB            what the check may remember (default 256); with
                                more it reads the files several times

  partita inspect --db DIR      application, partitions, files

  partita log --db DIR          print events, in commit order
    --partition P               those of a partition
    --workspace W               those of a workspace
    --from N                    from this LSN or offset on (default 1)
    --limit N                   at most so many (default: all)
    --follow                    go on with those that come. Only what a process
                                has written that closed the store again is seen:
                                a running one lets nobody else read
    --every DURATION            how often --follow looks (default 1s)

  partita numbers --db DIR --workspace W
                                a workspace's sequences and their last numbers

  partita backup --db DIR --to DIR2     copy a store
  partita restore --from DIR2 --to DIR  make a store of a copy, with a new id;
                                        log.db is needed of the copy; log.wal
                                        and subscriptions.db, if there, are
                                        taken along, and must be sound
  partita compact --db DIR --to DIR2    copy a store without its free pages
    --tail-events N             of restore: how many events it takes at a time
                                to rebuild state.db (default 131072); fewer take
                                less memory and more time
    --no-verify                 do not check the copy. One that has a fault is
                                not kept; nothing is ever overwritten

  partita serve --db DIR        run the application, and serve it over HTTP
    --listen ADDR               where (default 127.0.0.1:7420). All but loopback
                                addresses need a certificate and a token
    --tls-cert FILE, --tls-key FILE
                                the certificate and its key, as PEM
    --token-file FILE           the bearer token that requests must bring; or it
                                is in the environment, as PARTITA_TOKEN
    --connections N             how many at the same time (default 1024); at
                                most a quarter of them, and 256, are streams,
                                and a half, and 512, wait for an event

  partita subscriptions VERB [--name NAME] --db DIR
                                look after the durable consumers of a store that
                                nobody has open; it changes no other file than
                                subscriptions.db
  partita subscriptions VERB [--name NAME] --url URL
                                the same in a program that serves the HTTP API,
                                while it runs them
    --token-file FILE           the token for --url, or PARTITA_TOKEN
    list                        all of them
    show                        one, with each log that it reads
    parked                      the events that it has given up, and why
    replay, drop                hand a parked event to the handler once more, or
                                forget it: --partition P --offset N; or replay
                                --all
    pause, resume               deliver nothing, go on
    rewind                      set the next event of a log, behind or ahead:
                                --partition P --offset N
    skip                        go behind the last event of each log
    delete                      forget it

  Each command takes --json: JSON on stdout, with stable names; all else goes to
  stderr, as progress always does. Ids and numbers of any size are strings.

  partita --version             the version of this program

Without state.db, verify, inspect and log look at log.db alone, and say so; for
verify that is a fault.

Exit status: 0 fine; 1 the store has faults; 2 it could not look, or not do what
was asked: the store is locked, missing, foreign, too damaged, of an unknown
format, the server has refused; or wrong usage.
`

// about says which store an error is about, and what to do about a lock.
func about(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrLocked):
		return fmt.Errorf("%s: %w: a running process has it open. Stop it, or let it make a backup (bolt.Store.Backup) and look at that", dir, err)
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

// required returns a usage error if a flag is empty.
func required(command, name, value string) error {
	if value == "" {
		return cli.WrongUsage("%s: --%s is missing", command, name)
	}
	return nil
}
