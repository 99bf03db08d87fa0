package operate

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

func inspectCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "inspect " + sourceUse, Short: "Show the application, the partitions and the files of a store",
		Long: `Show the application of a store, its partitions with their epochs, checkpoints
and lag, its files with their free pages, its sequences, and the launches that
have generators of decimal ids. Without state.db it looks at log.db alone, and
says so.`,
	}
	from, asJSON := sourceFlags(c), cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		result, err := answerOf(ctx, from, "inspect", nil, func() (*inspectResult, error) { return inspect(ctx, from.dir, s.Err) })
		if err != nil {
			return err
		}
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

// inspect looks at a store.
func inspect(ctx context.Context, dir string, notes io.Writer) (result *inspectResult, err error) {
	store, closeIt, err := openReader(ctx, dir, notes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeIt()) }()
	in, err := store.Inspect(ctx)
	if err != nil {
		return nil, about(dir, err)
	}
	return newInspectResult(dir, &in), nil
}

// inspectResult is what a store says about itself, in the words of its JSON.
type inspectResult struct {
	Command     string              `json:"command"`
	Store       string              `json:"store"`
	ID          string              `json:"store_id"`
	Application string              `json:"application"`
	TrustLevel  messages.TrustLevel `json:"trust_level"`
	Events      number              `json:"events"`
	Projected   number              `json:"projected_before_lsn"`
	Lag         number              `json:"lag"`
	Workspaces  number              `json:"workspaces"`
	// MoreWorkspaces says that there are more than were counted.
	MoreWorkspaces bool `json:"more_workspaces"`
	// Pending is how many events log.wal has and log.db has not.
	Pending number `json:"pending"`
	// StateMissing says that there is no state.db. The workspaces were not counted then.
	StateMissing bool `json:"state_missing,omitempty"`
	// Subscriptions is how many durable consumers the store keeps.
	Subscriptions number             `json:"subscriptions"`
	Launches      []inspectLaunch    `json:"launches"`
	Partitions    []inspectPartition `json:"partitions"`
	Kinds         []inspectKind      `json:"kinds"`
	Files         []inspectFile      `json:"files"`
}

type inspectPartition struct {
	Partition  number `json:"partition"`
	Epoch      number `json:"epoch"`
	Last       number `json:"last_offset"`
	LastAt     string `json:"last_registered_at,omitempty"`
	Checkpoint number `json:"checkpoint"`
	Lag        number `json:"lag"`
	Failed     string `json:"failed,omitempty"`
}

// inspectLaunch is one that has numbered generators of decimal ids. One that is closed gives no number any more.
type inspectLaunch struct {
	Launch number `json:"launch"`
	Last   number `json:"last_generator,omitempty"`
	Closed bool   `json:"closed"`
}

type inspectKind struct {
	Kind      messages.WSKind   `json:"kind"`
	Name      string            `json:"name"`
	Sequences []inspectSequence `json:"sequences"`
}

type inspectSequence struct {
	Sequence messages.SeqID `json:"sequence"`
	Name     string         `json:"name"`
	Initial  id             `json:"initial"`
	Largest  id             `json:"largest"`
}

type inspectFile struct {
	Name      string `json:"name"`
	Format    number `json:"format"`
	Bytes     number `json:"bytes"`
	Pages     number `json:"pages"`
	FreePages number `json:"free_pages"`
	PageSize  number `json:"page_size"`
}

func newInspectResult(dir string, in *bolt.Inspection) *inspectResult {
	r := &inspectResult{
		Command: "inspect", Store: dir, ID: in.ID, Application: in.Descriptor.Application, TrustLevel: in.Descriptor.TrustLevel,
		Events: number(in.Events), Projected: number(in.Projected), Workspaces: number(in.Workspaces), MoreWorkspaces: in.MoreWorkspaces,
		StateMissing: in.StateMissing,
	}
	for i := range in.Partitions {
		r.addPartition(&in.Partitions[i])
	}
	for _, k := range in.Descriptor.Kinds {
		kind := inspectKind{Kind: k.ID, Name: k.Name}
		for _, s := range k.All() {
			kind.Sequences = append(kind.Sequences, inspectSequence{Sequence: s.ID, Name: s.Name, Initial: id(s.Initial), Largest: id(s.Max())})
		}
		r.Kinds = append(r.Kinds, kind)
	}
	files := []bolt.FileInspection{in.Log, in.State}
	if in.StateMissing {
		files = files[:1]
	}
	if in.Subscriptions != nil {
		files = append(files, in.Subscriptions.FileInspection)
		r.Subscriptions = number(in.Subscriptions.Count)
	}
	if in.IDs != nil {
		files = append(files, in.IDs.FileInspection)
		r.addLaunches(in.IDs)
	}
	for _, f := range files {
		r.Files = append(r.Files, inspectFile{
			Name: f.Name, Format: number(f.Format), Bytes: number(f.Size), Pages: number(f.Pages), FreePages: number(f.FreePage), PageSize: number(f.PageSize),
		})
	}
	if w := in.WAL; w != nil {
		r.Files = append(r.Files, inspectFile{Name: w.Name, Format: number(w.Format), Bytes: number(w.Size)})
		r.Pending = number(w.Pending)
	}
	return r
}

func (r *inspectResult) addPartition(p *bolt.PartitionInspection) {
	result := inspectPartition{
		Partition: number(p.Partition), Epoch: number(p.Epoch), Last: number(p.Last), Checkpoint: number(p.Checkpoint), Lag: number(p.Lag()),
	}
	if p.Last != 0 {
		result.LastAt = p.LastRegisteredAt.String()
	}
	if p.Failed != nil {
		result.Failed = cli.OneLine(p.Failed)
	}
	r.Lag += result.Lag
	r.Partitions = append(r.Partitions, result)
}

func (r *inspectResult) addLaunches(in *bolt.IDsInspection) {
	for _, l := range in.Launches {
		launch := inspectLaunch{Launch: number(l.Launch), Closed: l.Last > ids.MaxGenerator}
		if !launch.Closed {
			launch.Last = number(l.Last)
		}
		r.Launches = append(r.Launches, launch)
	}
}

// workspaces says how many there are.
func (r *inspectResult) workspaces() string {
	switch {
	case r.StateMissing:
		return "an unknown number of workspaces"
	case r.MoreWorkspaces:
		return "more than " + human.Counted(r.Workspaces, "workspace")
	}
	return human.Counted(r.Workspaces, "workspace")
}

func (r *inspectResult) text(c *console.Console) {
	c.Say("application %q, %s, trust level %d, store %s", r.Application, human.Counted(len(r.Partitions), "partition"), r.TrustLevel, r.ID)
	c.Say("%s, %s of them not in the projections yet, %s", human.Counted(r.Events, "event"), human.Count(r.Lag), r.workspaces())
	if r.Pending > 0 {
		c.Say("%s at the end in log.wal, and not in log.db yet", human.Counted(r.Pending, "event"))
	}
	if r.Subscriptions > 0 {
		c.Say("%s", human.Counted(r.Subscriptions, "subscription"))
	}
	t := table.New(table.Left("file"), table.Right("format"), table.Right("size"), table.Right("pages"), table.Right("free"))
	for _, f := range r.Files {
		if f.PageSize == 0 { // log.wal has none
			t.Row(f.Name, uint64(f.Format), human.Bytes(f.Bytes))
			continue
		}
		t.Row(f.Name, uint64(f.Format), human.Bytes(f.Bytes), uint64(f.Pages), uint64(f.FreePages))
	}
	c.Draw("Files", t)
	t = table.New(table.Right("partition"), table.Right("epoch"), table.Right("last offset"), table.Right("checkpoint"), table.Right("lag"), table.Left("last event at"))
	for _, p := range r.Partitions {
		t.Row(uint64(p.Partition), uint64(p.Epoch), uint64(p.Last), uint64(p.Checkpoint), uint64(p.Lag), p.LastAt)
	}
	c.Draw("Partitions", t)
	for _, p := range r.Partitions {
		if p.Failed != "" {
			c.Say("partition %d has failed: %s", p.Partition, p.Failed)
		}
	}
	r.drawLaunches(c)
	t = table.New(table.Left("kind"), table.Left("sequence"), table.Right("id"), table.Right("from"), table.Right("to"))
	for _, k := range r.Kinds {
		for _, s := range k.Sequences {
			t.Row(k.Name, s.Name, uint64(s.Sequence), uint64(s.Initial), uint64(s.Largest))
		}
	}
	c.Draw("Sequences", t)
}

// drawLaunches shows of which launches generators of decimal ids have numbers.
func (r *inspectResult) drawLaunches(c *console.Console) {
	if len(r.Launches) == 0 {
		return
	}
	t := table.New(table.Right("launch"), table.Right("last generator"))
	for _, l := range r.Launches {
		if l.Closed {
			t.Row(uint64(l.Launch), "closed")
			continue
		}
		t.Row(uint64(l.Launch), uint64(l.Last))
	}
	c.Draw("Launches", t)
}
