package operate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
	"github.com/partita-go/partita/cmd/partita/internal/paths"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

func backupCommand() *cobra.Command {
	c := &cobra.Command{Use: "backup " + sourceUse + " --to DIR", Short: "Copy a store", Long: `Copy a store. A server that has it open goes on meanwhile, and writes what is
copied.

` + aboutCopies}
	source := sourceFlags(c)
	copier{name: "backup", copy: func(ctx context.Context, _, to string, o bolt.CopyOptions) (bolt.Copied, error) {
		return backup(ctx, source, to, o)
	}}.flags(c, source.name)
	return c
}

func restoreCommand() *cobra.Command {
	c := &cobra.Command{Use: "restore --from DIR --to DIR", Short: "Make a store of a copy", Long: `Make a store of a copy, with a new id. log.db is needed of the copy; log.wal and
subscriptions.db, if there, are taken along, and must be sound. state.db is
rebuilt.

` + aboutCopies}
	from := cli.Required(c, "from", "the copy's directory, `DIR`")
	tail := c.Flags().Int("tail-events", bolt.Options{}.WithDefaults().TailEvents,
		"how many events, `N`, it takes at a time to rebuild state.db; fewer take less memory and more time")
	copier{name: "restore", copy: func(ctx context.Context, from, to string, o bolt.CopyOptions) (copied bolt.Copied, err error) {
		if err := cli.InRange("tail-events", *tail, 1, math.MaxInt32); err != nil {
			return copied, err
		}
		o.TailEvents = *tail
		return bolt.Restore(ctx, from, to, o)
	}}.flags(c, func() string { return *from })
	return c
}

func compactCommand() *cobra.Command {
	c := &cobra.Command{Use: "compact --db DIR --to DIR", Short: "Copy a store without its free pages", Long: `Copy a store without its free pages. The copy has the same id: use only one of
them from then on. Nobody may have the store open. Of one that is served, make a
backup and compact that.

` + aboutCopies}
	dir := cli.DB(c)
	copier{name: "compact", copy: bolt.Compact}.flags(c, func() string { return *dir })
	return c
}

const aboutCopies = `The copy is checked, and one that has a fault is not kept. Nothing is ever
overwritten.`

// copier makes a copy of a store.
type copier struct {
	name string
	copy func(ctx context.Context, from, to string, o bolt.CopyOptions) (bolt.Copied, error)
}

// backup makes a backup of a store that nobody has open, or of what a server writes that has.
func backup(ctx context.Context, from *source, to string, o bolt.CopyOptions) (copied bolt.Copied, err error) {
	server, err := from.server(ctx)
	if err != nil {
		return copied, err
	}
	if server != nil {
		defer func() { err = errors.Join(err, server.close()) }()
		return server.backup(ctx, to, o)
	}
	s, err := bolt.OpenExisting(ctx, from.dir, bolt.Options{ReadOnly: true})
	if err != nil {
		return copied, err
	}
	defer func() { err = errors.Join(err, closeStore(s)) }()
	return s.Backup(ctx, to, o)
}

// backup makes a backup of what a server writes.
func (k *serverKeeper) backup(ctx context.Context, to string, o bolt.CopyOptions) (copied bolt.Copied, err error) {
	content, err := k.stream(ctx, "backup", nil)
	if err != nil {
		return copied, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return bolt.ReadBackup(ctx, content, to, o)
}

// flags lets a command make the copy of what from names.
func (k copier) flags(c *cobra.Command, from func() string) {
	to := cli.Required(c, "to", "the copy's directory, `DIR`: a new one, or one that is empty")
	noVerify := c.Flags().Bool("no-verify", false, "do not check the copy")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		if err := paths.CheckOutside("to", *to); err != nil {
			return err
		}
		return k.run(ctx, console.New(s, *asJSON), from(), *to, bolt.CopyOptions{SkipVerify: *noVerify})
	})
}

// copyResult is what was copied, in the words of its JSON.
type copyResult struct {
	Command  string          `json:"command"`
	From     string          `json:"from"`
	To       string          `json:"to"`
	ID       string          `json:"store_id"`
	Events   number          `json:"events"`
	Verified bool            `json:"verified"`
	Seconds  console.Seconds `json:"seconds"`
	Files    []fileResult    `json:"files"`
	// StateUnread is why the state.db of what was restored could not say whether the log is whole.
	StateUnread string `json:"state_unread,omitempty"`
	// Check is there if the copy was checked.
	Check *checkResult `json:"check,omitempty"`
}

// fileResult are the sizes of a file, in bytes.
type fileResult struct {
	Name string `json:"name"`
	From number `json:"from_bytes"`
	To   number `json:"to_bytes"`
}

func (k copier) run(ctx context.Context, c *console.Console, from, to string, o bolt.CopyOptions) error {
	begun := time.Now()
	o.Progress, o.Verify = showCopy(c), verify.Options{Progress: showCheck(c)}
	copied, err := k.copy(ctx, from, to, o)
	if err != nil {
		c.Done()
		return k.failed(ctx, from, to, err)
	}
	result := copyResult{
		Command: k.name, From: from, To: to, ID: copied.ID, Events: number(copied.Events), Verified: !o.SkipVerify,
		Seconds: console.Seconds(time.Since(begun)),
		Files: []fileResult{
			{Name: "log.db", From: number(copied.LogFrom), To: number(copied.LogTo)},
			{Name: "state.db", From: number(copied.StateFrom), To: number(copied.StateTo)},
		},
	}
	if copied.StateUnread != nil {
		result.StateUnread = copied.StateUnread.Error()
	}
	if copied.SubscriptionsTo > 0 {
		result.Files = append(result.Files, fileResult{
			Name: "subscriptions.db", From: number(copied.SubscriptionsFrom), To: number(copied.SubscriptionsTo),
		})
	}
	if !o.SkipVerify {
		r := newCheckResult(copied.Report, nil)
		result.Check = &r
	}
	if err := c.Result(result, result.text); err != nil {
		return fmt.Errorf("%s of %s: the copy was made, in %s, but that could not be told: %w", k.name, from, to, err)
	}
	return nil
}

// failed says which copy has failed. What went wrong may be about either directory.
func (k copier) failed(ctx context.Context, from, to string, err error) error {
	switch {
	case errors.Is(err, cli.ErrUsage):
		return err
	case errors.Is(err, storage.ErrLocked):
		return held(ctx, from, err, "partita backup copies it meanwhile. For "+k.name+" stop the server, or take that copy")
	case errors.Is(err, bolt.ErrNoState):
		return about(from, err)
	}
	return fmt.Errorf("%s of %s to %s: %w", k.name, from, to, err)
}

// showCopy shows the phases of a copy.
func showCopy(c *console.Console) func(bolt.CopyProgress) {
	shown := ""
	return func(p bolt.CopyProgress) {
		if p.Phase != shown {
			shown = p.Phase
			c.Phase(p.Phase, int64(p.Total))
		}
		c.Set(int64(p.Done))
	}
}

func (r *copyResult) text(c *console.Console) {
	t := table.New(table.Left("file"), table.Right("before"), table.Right("copy"), table.Right("gain"))
	for _, f := range r.Files {
		if f.From == 0 {
			t.Row(f.Name, "rebuilt", human.Bytes(f.To), nil)
			continue
		}
		t.Row(f.Name, human.Bytes(f.From), human.Bytes(f.To), fmt.Sprintf("%.1f%%", 100*(1-float64(f.To)/float64(f.From))))
	}
	c.Draw("Files", t)
	c.Say("%s: %s in %s, store %s", r.Command, human.Counted(r.Events, "event"), r.To, r.ID)
	if r.StateUnread != "" {
		c.Say("%s whether the log had its end could not be asked of the state.db beside it: %s", console.Mark(false), r.StateUnread)
	}
	if r.Verified {
		c.Say("%s the copy was read again: every invariant that its files can show holds", console.Mark(true))
	}
}
