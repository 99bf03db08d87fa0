package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/partita/internal/paths"
	"github.com/partita-go/partita/cmd/partita/internal/transfer"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

func exportCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "export " + sourceUse + " --to FILE", Short: "Write the events of a store to a file",
		Long: `Write the events of a store to a file of JSON documents, one a line, in the
order of their times: what import makes a store of. docs/format.md describes the
file. It gets its name when it is whole; nothing is overwritten. An export that
was killed begins anew: of the same store it is the same file, byte for byte.
Of a store that a server has open a copy is exported, which is made beside FILE,
or in TMPDIR if that is stdout, and removed.`,
	}
	x := exporter{from: sourceFlags(c)}
	x.to = cli.Required(c, "to", "the `FILE`: a new one, or - for stdout, which has no result then")
	c.Flags().Func("partition", "export the events of partition `P`; may be given several times", listed(&x.part.Partitions, messages.ParsePartitionID))
	c.Flags().Func("workspace", "export the events of workspace `W`; may be given several times", listed(&x.part.Workspaces, messages.ParseWSID))
	x.subscriptions = c.Flags().String("subscriptions", "", "write the positions of all subscriptions to `FILE`")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		if err := x.check(); err != nil {
			return err
		}
		return x.run(ctx, s, console.New(s, *asJSON))
	})
	return c
}

func listed[T any](to *[]T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		v, err := parse(text)
		*to = append(*to, v)
		return err
	}
}

// exporter exports a store.
type exporter struct {
	from              *source
	to, subscriptions *string
	part              bolt.Part
}

func (x *exporter) check() error {
	whole := len(x.part.Partitions)+len(x.part.Workspaces) == 0
	switch {
	case len(x.part.Partitions) > 0 && len(x.part.Workspaces) > 0:
		return cli.WrongUsage("export: --partition and --workspace exclude each other")
	case *x.subscriptions != "" && !whole:
		return cli.WrongUsage("export: --subscriptions wants the whole store: positions are of its logs")
	}
	return errors.Join(paths.CheckOutside("to", *x.to), paths.CheckOutside("subscriptions", *x.subscriptions))
}

// exportResult is what was exported, in the words of its JSON.
type exportResult struct {
	Command string          `json:"command"`
	Store   string          `json:"store"`
	To      string          `json:"to"`
	Events  number          `json:"events"`
	SHA256  string          `json:"sha256"`
	Seconds console.Seconds `json:"seconds"`
	// Subscriptions is how many there are in their file.
	Subscriptions number `json:"subscriptions"`
}

// run exports the store, or a copy of what a server has open.
func (x *exporter) run(ctx context.Context, s cli.Streams, c *console.Console) (err error) {
	begun := time.Now()
	if *x.subscriptions != "" {
		if err := checkNew(*x.subscriptions); err != nil {
			return x.failedSubscriptions(err) // before all is exported
		}
	}
	server, err := x.from.server(ctx)
	if err != nil {
		return err
	}
	if server == nil {
		return x.runIn(ctx, x.from.dir, begun, s, c)
	}
	defer func() { err = errors.Join(err, server.close()) }()
	beside := ""
	if !x.toStdout() {
		beside = filepath.Dir(*x.to)
		if err := checkNew(*x.to); err != nil {
			return x.failed(err) // before it is copied
		}
	}
	for _, ws := range x.part.Workspaces {
		if err := server.answer(ctx, "numbers", url.Values{"workspace": {ws.String()}}, nil); err != nil {
			return err
		}
	}
	dir, remove, err := server.copied(ctx, beside, c)
	if err != nil {
		return x.failed(err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	return x.runIn(ctx, dir, begun, s, c)
}

func (x *exporter) toStdout() bool { return *x.to == "-" }

// runIn exports the store in a directory, which nobody has open.
func (x *exporter) runIn(ctx context.Context, dir string, begun time.Time, s cli.Streams, c *console.Console) (err error) {
	store, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	name := x.from.name()
	if err := checkWorkspaces(ctx, store, x.part.Workspaces...); err != nil {
		return about(name, err)
	}
	var done transfer.Exported
	c.Phase("export", 0)
	if x.toStdout() {
		done, err = x.export(ctx, store, s.Out, c)
	} else {
		err = writeFile(*x.to, func(w io.Writer) error {
			done, err = x.export(ctx, store, w, c)
			return err
		})
	}
	if err != nil {
		c.Done()
		return x.failed(err)
	}
	result := exportResult{Command: "export", Store: name, To: *x.to, Events: number(done.Events), SHA256: done.SHA256}
	if *x.subscriptions != "" {
		err := writeFile(*x.subscriptions, func(w io.Writer) error {
			n, err := transfer.ExportSubscriptions(ctx, store, done, w)
			result.Subscriptions = number(n)
			return err
		})
		if err != nil {
			c.Done()
			return x.failedSubscriptions(err)
		}
	}
	result.Seconds = console.Seconds(time.Since(begun))
	if x.toStdout() {
		c.Done()
		return nil
	}
	return c.Result(result, result.text)
}

func (x *exporter) failed(err error) error {
	if errors.Is(err, bolt.ErrPart) {
		return cli.WrongUsage("export: %v", err)
	}
	return fmt.Errorf("export of %s to %s: %w", x.from.name(), *x.to, err)
}

func (x *exporter) failedSubscriptions(err error) error {
	return fmt.Errorf("export of %s: %s: %w", x.from.name(), *x.subscriptions, err)
}

func (x *exporter) export(ctx context.Context, s *bolt.Store, w io.Writer, c *console.Console) (transfer.Exported, error) {
	begun := false
	return transfer.Export(ctx, s, x.part, w, func(done, total uint64) {
		if !begun {
			begun = true
			c.Phase("export", int64(total))
		}
		c.Set(int64(done))
	})
}

func (r *exportResult) text(c *console.Console) {
	c.Say("export: %s of %s in %s", human.Counted(r.Events, "event"), r.Store, r.To)
	if r.Subscriptions > 0 {
		c.Say("and %s", human.Counted(r.Subscriptions, "subscription"))
	}
}

// writeFile lets fill write a file that has its name when it is whole, and synced. There must be none of that name.
func writeFile(name string, fill func(io.Writer) error) error {
	if err := checkNew(name); err != nil {
		return err
	}
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// checkNew returns an error if there is a file of that name.
func checkNew(name string) error {
	switch _, err := os.Lstat(name); {
	case err == nil:
		return &os.PathError{Op: "make", Path: name, Err: os.ErrExist}
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	return nil
}

func importCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "import --from FILE --to DIR", Short: "Make a store of exported events",
		Long: `Make a store of exported events, with as many partitions as the old one, or
another number. Each line of the file is checked, and the store in the end. It
gets its name then; until then it is in DIR.import. An import that was killed,
or has failed for want of room, is gone on with by the same command.`,
	}
	m := importer{from: cli.Required(c, "from", "the `FILE`, or - for stdin"), to: cli.Required(c, "to", "the store's directory, `DIR`: a new one, or one that is empty")}
	m.partitions = c.Flags().Uint64("partitions", 0, "give the store `N` partitions")
	c.Flags().Lookup("partitions").DefValue = "as many as the old store has"
	c.Flags().Func("workspace", "import the events of workspace `W` alone; may be given several times", listed(&m.workspaces, messages.ParseWSID))
	m.subscriptions = c.Flags().String("subscriptions", "", "give the store the subscriptions of `FILE`")
	m.dryRun = c.Flags().Bool("dry-run", false, "check the files, and write nothing")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		if c.Flags().Changed("partitions") {
			if err := cli.InRange("partitions", *m.partitions, 1, messages.MaxPartitions); err != nil {
				return err
			}
		}
		if *m.subscriptions != "" && len(m.workspaces) > 0 {
			return cli.WrongUsage("import: --subscriptions wants all workspaces: positions are of the logs of all")
		}
		if err := paths.CheckOutside("to", *m.to); err != nil {
			return err
		}
		c := console.New(s, *asJSON)
		if err := m.run(ctx, s, c); err != nil {
			c.Done()
			if errors.Is(err, storage.ErrLocked) {
				err = fmt.Errorf("%w: another import is under way", err)
			}
			return fmt.Errorf("import of %s to %s: %w", *m.from, *m.to, err)
		}
		return nil
	})
	return c
}

// importer imports a file.
type importer struct {
	from, to, subscriptions *string
	workspaces              []messages.WSID
	partitions              *uint64
	dryRun                  *bool
}

// importResult is what was imported, in the words of its JSON.
type importResult struct {
	Command string `json:"command"`
	From    string `json:"from"`
	To      string `json:"to"`
	DryRun  bool   `json:"dry_run"`
	ID      string `json:"store_id,omitempty"`
	Events  number `json:"events"`
	// Found are those of the events that an import before has written that was cut off.
	Found         number          `json:"found"`
	Partitions    number          `json:"partitions"`
	Subscriptions number          `json:"subscriptions"`
	Part          bool            `json:"part"`
	Seconds       console.Seconds `json:"seconds"`
	Check         *checkResult    `json:"check,omitempty"`
}

func (m *importer) run(ctx context.Context, s cli.Streams, c *console.Console) (err error) {
	begun := time.Now()
	o := transfer.ImportOptions{Partitions: uint32(*m.partitions), Workspaces: m.workspaces}
	o.Store = bolt.ImportOptions{DryRun: *m.dryRun, Progress: showCopy(c), Verify: verify.Options{Progress: showCheck(c)}}
	if o.Subscriptions, err = m.readSubscriptions(); err != nil {
		return err
	}
	in := s.In
	if *m.from != "-" {
		f, err := os.Open(*m.from)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it was only read
		in = f
	}
	r, err := transfer.NewReader(in)
	if err != nil {
		return err
	}
	done, err := transfer.Import(ctx, r, *m.to, o)
	if err != nil {
		return err
	}
	result := importResult{
		Command: "import", From: *m.from, To: *m.to, DryRun: *m.dryRun, ID: done.ID, Events: number(done.Events), Found: number(done.Found),
		Partitions: number(cmp.Or(o.Partitions, r.Header.Descriptor.Partitions)), Part: !r.Header.Whole() || len(m.workspaces) > 0, Seconds: console.Seconds(time.Since(begun)),
	}
	if o.Subscriptions != nil {
		result.Subscriptions = number(o.Subscriptions.Count())
	}
	if !*m.dryRun {
		check := newCheckResult(done.Report, nil)
		result.Check = &check
	}
	return c.Result(result, result.text)
}

func (m *importer) readSubscriptions() (*transfer.Subscriptions, error) {
	if *m.subscriptions == "" {
		return nil, nil
	}
	f, err := os.Open(*m.subscriptions)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	s, err := transfer.ReadSubscriptions(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", *m.subscriptions, err)
	}
	return s, nil
}

func (r *importResult) text(c *console.Console) {
	if r.Part {
		c.Say("%s these are the events of a part of a store", console.Mark(false))
	}
	if r.DryRun {
		c.Say("%s dry run: %s can be imported, for %s; nothing was written", console.Mark(true),
			human.Counted(r.Events, "event"), human.Counted(r.Partitions, "partition"))
		return
	}
	c.Say("import: %s in %s, %s, store %s", human.Counted(r.Events, "event"), r.To, human.Counted(r.Partitions, "partition"), r.ID)
	if r.Found > 0 {
		c.Say("%s of them were there already", human.Counted(r.Found, "event"))
	}
	if r.Subscriptions > 0 {
		c.Say("and %s", human.Counted(r.Subscriptions, "subscription"))
	}
	c.Say("%s the store was read: every invariant that its files can show holds", console.Mark(true))
}
