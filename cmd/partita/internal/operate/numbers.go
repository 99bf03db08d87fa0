package operate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

func numbersCommand() *cobra.Command {
	c := &cobra.Command{Use: "numbers " + sourceUse + " --workspace W", Short: "Show a workspace's sequences and their last numbers"}
	from := sourceFlags(c)
	workspace := cli.Required(c, "workspace", "the workspace's id, `W`")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		ws, err := messages.ParseWSID(*workspace)
		if err != nil {
			return cli.WrongUsage("--workspace: %v", err)
		}
		query := url.Values{"workspace": {ws.String()}}
		result, err := answerOf(ctx, from, "numbers", query, func() (*numbersResult, error) { return findNumbers(ctx, from.dir, ws) })
		if err != nil {
			return err
		}
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

// findNumbers reads the numbers of a store.
func findNumbers(ctx context.Context, dir string, ws messages.WSID) (result *numbersResult, err error) {
	store, err := open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeStore(store)) }()
	if result, err = readNumbers(ctx, store, ws); err != nil {
		return nil, about(dir, err)
	}
	result.Command, result.Store = "numbers", dir
	return result, nil
}

// numbersResult are a workspace's last numbers, in the words of its JSON.
type numbersResult struct {
	Command   string          `json:"command"`
	Store     string          `json:"store"`
	Workspace id              `json:"workspace"`
	Partition number          `json:"partition"`
	Kind      messages.WSKind `json:"kind"`
	KindName  string          `json:"kind_name"`
	Events    number          `json:"events"`
	// Zone is the time zone that the workspace was given last, ZoneSet when that was.
	Zone      string           `json:"zone,omitempty"`
	ZoneSet   string           `json:"zone_set_at,omitempty"`
	Sequences []sequenceResult `json:"sequences"`
}

// sequenceResult is where a sequence stands.
type sequenceResult struct {
	Sequence messages.SeqID `json:"sequence"`
	Name     string         `json:"name"`
	// Period is the first day of the period, if the sequence restarts and has given a number. There is one
	// of these for each period that has one, the oldest first.
	Period  string `json:"period,omitempty"`
	Initial id     `json:"initial"`
	// Largest is the last number that can be given out, NearlyUsed says that more than 90 % are used.
	Largest    id   `json:"largest"`
	NearlyUsed bool `json:"nearly_used"`
	// Last is the last number given out, 0 if none was. Stored is the same as of the
	// partition's checkpoint.
	Last   id `json:"last"`
	Stored id `json:"stored"`
	// Printed is the last number in the sequence's format, if it has one and a number.
	Printed string `json:"printed,omitempty"`
}

// readNumbers returns the last numbers, and those that the projections have.
func readNumbers(ctx context.Context, s *bolt.Store, ws messages.WSID) (*numbersResult, error) {
	stored, err := s.Numbers(ctx, ws)
	if err != nil {
		return nil, err
	}
	last, err := partition.NewReader(s).Numbers(ctx, ws)
	if err != nil {
		return nil, err
	}
	if last.Kind == 0 {
		return nil, noEvent(ws)
	}
	d := s.Descriptor()
	kind, _ := d.Kind(last.Kind)
	storeds := make(map[messages.SequencePeriod]messages.Number, len(stored.Numbers))
	for _, n := range stored.Numbers {
		storeds[n.SequencePeriod()] = n.Number
	}
	r := &numbersResult{
		Workspace: id(ws), Partition: number(messages.PartitionOf(ws, d.Partitions)), Kind: last.Kind, KindName: kind.Name,
		Events: number(last.Of(messages.SeqWLogOffset)[0].Number),
	}
	if change, there := last.Zones.Last(); there {
		r.Zone, r.ZoneSet = change.Zone.String(), messages.TimestampOf(change.Set).String()
	}
	printer := d.Printer()
	for _, seq := range kind.All() {
		for _, n := range last.Of(seq.ID) {
			r.add(&seq, n, storeds[n.SequencePeriod()], printer)
		}
	}
	return r, nil
}

// add adds the last number of a sequence, or of a period of it.
func (r *numbersResult) add(seq *messages.Sequence, n messages.SequenceNumber, stored messages.Number, p messages.Printer) {
	s := sequenceResult{
		Sequence: seq.ID, Name: seq.Name, Initial: id(seq.Initial), Largest: id(seq.Max()), NearlyUsed: seq.NearlyUsed(n.Number),
		Last: id(n.Number), Stored: id(stored),
	}
	if n.Period != 0 {
		s.Period = n.Period.String()
	}
	if n.Number != 0 {
		s.Printed = p.Print(r.Kind, n)
	}
	r.Sequences = append(r.Sequences, s)
}

func (r *numbersResult) text(c *console.Console) {
	c.Say("workspace %d: partition %d, kind %d (%s), %s", r.Workspace, r.Partition, r.Kind, r.KindName, human.Counted(r.Events, "event"))
	if r.Zone != "" {
		c.Say("time zone: %s since %s, for each sequence that restarts from its next period on", r.Zone, r.ZoneSet)
	}
	t := table.New(table.Right("id"), table.Left("sequence"), table.Right("first"), table.Right("last"),
		table.Right("at the checkpoint"), table.Right("largest"), table.Left(""))
	for _, s := range r.Sequences {
		t.Row(uint64(s.Sequence), strings.TrimSpace(s.Name+" "+s.Period), fmt.Sprint(s.Initial), lastGiven(s.Last), lastGiven(s.Stored),
			fmt.Sprint(s.Largest), strings.TrimSpace(s.Printed+" "+s.use()))
	}
	c.Draw("Last numbers given out", t)
}

// use says whether the sequence ends soon.
func (s *sequenceResult) use() string {
	switch {
	case s.Last >= s.Largest:
		return "used up"
	case s.NearlyUsed:
		return "more than 90 % used"
	}
	return ""
}

// lastGiven returns a number in words.
func lastGiven(n id) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(uint64(n))
}
