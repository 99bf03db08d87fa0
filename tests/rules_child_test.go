package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/tests/internal/days"
)

// rulesChildEnv holds a rulesChild. If it is set, the test binary is a process that appends until it is killed.
const rulesChildEnv = "PARTITA_RULES_CHILD"

const (
	rulesWorkspaces = 6
	// largestInvoice is the last invoice of a workspace, which comes soon.
	largestInvoice messages.Number = 40
)

// rulesShop has few invoices, and receipts that begin anew each day.
func rulesShop() messages.Descriptor {
	d := shop(2)
	for i := range d.Kinds[0].Sequences {
		s := &d.Kinds[0].Sequences[i]
		if s.ID == seqInvoice {
			s.Largest = largestInvoice
		}
		if s.ID == seqReceipt {
			s.Initial, s.Restart = 1, messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Keep: 3}
		}
	}
	return d
}

func rulesApp(settings partition.Settings) partition.Application {
	settings.ClockJump = 1 << 60
	return partition.Application{WorkspaceZero: true, Descriptor: rulesShop(), Settings: settings}
}

// rulesChild says what a process does.
type rulesChild struct {
	Dir  string
	Seed uint64
	// Base is what its clock shows at first.
	Base     time.Time
	Settings partition.Settings
}

// hurry is how much faster than time the clock of a process goes: a day takes 0.2 s.
const hurry = 432_000

type hurriedClock struct {
	actors.Clock
	began, base time.Time
}

func (c hurriedClock) Now() time.Time { return c.base.Add(time.Since(c.began) * hurry) }

// ruled is a line that a process writes: an append is begun, and then perhaps acknowledged or refused.
type ruled struct {
	Body    string
	Begun   *messages.Draft             `json:",omitempty"`
	Done    *messages.Appended          `json:",omitempty"`
	Refused string                      `json:",omitempty"`
	Ended   *messages.OverflowError     `json:",omitempty"`
	Date    *messages.BusinessDateError `json:",omitempty"`
}

// runRulesChild appends until the process is killed. It returns only on an error.
func runRulesChild(text string, out io.Writer) error {
	ctx := context.Background()
	var c rulesChild
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	app := rulesApp(c.Settings)
	store, err := bolt.Open(ctx, c.Dir, app.Descriptor, bolt.Options{Create: true})
	if err != nil {
		return err
	}
	clock := hurriedClock{actors.SystemClock(), time.Now(), c.Base}
	deployed, err := partition.NewAppParts(system, partition.Options{Clock: clock}).Deploy(ctx, app, store)
	if err != nil {
		return err
	}
	if err := deployed.Ready(ctx); err != nil {
		return err
	}
	failed := make(chan error)
	for i := range uint64(8) {
		go func() {
			random := rand.New(rand.NewPCG(c.Seed, i))
			for n := 0; ; n++ {
				if err := appendRuled(ctx, deployed, clock, random, fmt.Sprintf("%d-%d-%d", c.Seed, i, n), out); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}

// ruledDraft is an event that wants numbers with rules, has a business date, moves a sequence, or its workspace.
func ruledDraft(random *rand.Rand, now time.Time, body string) messages.Draft {
	d := messages.Draft{Body: []byte(body)}
	for _, seq := range []messages.SeqID{seqReceipt, seqInvoice} {
		if random.IntN(3) > 0 {
			d.Wanted = append(d.Wanted, messages.Wanted{Seq: seq, Count: uint32(random.IntN(3))})
		}
	}
	switch random.IntN(20) {
	case 0, 1:
		d.Zone = days.Zones[random.IntN(len(days.Zones))]
	case 2, 3:
		d.Date = days.Next(calendar.DateOf(now), random.IntN(9)-4)
	case 4:
		d.Moves = []messages.SequenceNumber{{Seq: seqReceipt, Number: messages.Number(1 + random.IntN(40)), Period: calendar.DateOf(now)}}
	}
	return d
}

func appendRuled(ctx context.Context, app *partition.App, clock actors.Clock, random *rand.Rand, body string, out io.Writer) error {
	ws := messages.WSID(random.Uint64N(rulesWorkspaces))
	sequencer, err := app.SequencerOf(ws)
	if err != nil {
		return err
	}
	draft := ruledDraft(random, clock.Now(), body)
	line := ruled{Body: body, Begun: &draft}
	if err := line.write(out); err != nil {
		return err
	}
	line.Begun = nil
	line.Done, err = sequencer.Append(ctx, partition.AppendTo{Workspace: ws, Kind: kindShop, Wait: true}, draft)
	if err != nil {
		line.Refused = err.Error()
		ended, isOverflow := errors.AsType[*messages.OverflowError](err)
		date, isDate := errors.AsType[*messages.BusinessDateError](err)
		if line.Ended, line.Date = ended, date; !isOverflow && !isDate && !errors.Is(err, calendar.ErrZoneChange) && !errors.Is(err, messages.ErrBackward) {
			return err
		}
	}
	return line.write(out)
}

// write writes the line at once: a pipe takes it whole or not at all.
func (r *ruled) write(out io.Writer) error {
	line, err := json.Marshal(r)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
	}
	return err
}
