package actors

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// Handler decides what a command does. It runs inside the command's transaction,
// so nothing else happens in the partition meanwhile: it may read the store, take
// numbers, set the event's body and records. An error refuses the command: it is
// the answer, and nothing of the command is left. The context ends with the
// command's deadline. One handler serves all command processors that it was given
// to, concurrently.
type Handler func(ctx context.Context, c *CommandContext) error

// CommandContext is a command under way. It is valid until the handler returns,
// and belongs to the handler's goroutine.
type CommandContext struct {
	command *messages.Command
	tx      *Transaction
	ids     map[messages.RawID]messages.RecordID
	body    []byte
	records []messages.Record
	// given finds what Next gave.
	given messages.NumberSet
}

// Command returns the command. The handler must not change it.
func (c *CommandContext) Command() *messages.Command { return c.command }

// PLogOffset is the event's place in the partition's log.
func (c *CommandContext) PLogOffset() messages.PLogOffset { return c.tx.PLogOffset() }

// WLogOffset is the event's place in the workspace's log.
func (c *CommandContext) WLogOffset() messages.WLogOffset { return c.tx.WLogOffset() }

// RegisteredAt is the event's time of registration.
func (c *CommandContext) RegisteredAt() messages.Timestamp { return c.tx.RegisteredAt() }

// ID returns the real id of a raw one, and ErrRawID if the command has no such.
func (c *CommandContext) ID(raw messages.RawID) (messages.RecordID, error) {
	id, ok := c.ids[raw]
	if !ok {
		return messages.RecordID{}, noSuchRaw(raw)
	}
	return id, nil
}

// Next gives the event another number, see [Transaction.Next].
func (c *CommandContext) Next(ctx context.Context, seq messages.SeqID) (messages.Number, error) {
	return c.tx.Next(ctx, seq)
}

// NextRange gives the event the next numbers of a sequence, see [Transaction.NextRange].
func (c *CommandContext) NextRange(ctx context.Context, w messages.Wanted) (first messages.Number, err error) {
	return c.tx.NextRange(ctx, w)
}

// Bring gives the event a number of an old system, see [Transaction.Bring]. The ids of raw records are given before the
// handler runs: an event that brings numbers along has none, but ErrDraft.
func (c *CommandContext) Bring(ctx context.Context, n messages.SequenceNumber) error {
	return c.tx.Bring(ctx, n)
}

// Move moves a sequence forward, see [Transaction.Move].
func (c *CommandContext) Move(ctx context.Context, n messages.SequenceNumber) error {
	return c.tx.Move(ctx, n)
}

// SetBody sets the event's body. Default: the command's body.
func (c *CommandContext) SetBody(body []byte) { c.body = body }

// Insert adds a new record to the event. Its id is one of this event's numbers,
// or an explicit one: then the id's sequence goes on above it, and ErrExplicitID is
// returned if it is above the cap.
func (c *CommandContext) Insert(ctx context.Context, id messages.RecordID, data []byte) error {
	if !c.given.Has(c.tx.Numbers(), id.SequenceNumber()) {
		if err := c.tx.Raise(ctx, id); err != nil {
			return err
		}
	}
	c.records = append(c.records, messages.Record{ID: id, New: true, Data: data})
	return nil
}

// Update adds a new state of a record to the event. If the record is ahead of its
// sequence, the command is refused with a [*messages.RecordAheadError].
func (c *CommandContext) Update(id messages.RecordID, data []byte) {
	c.records = append(c.records, messages.Record{ID: id, Data: data})
}

// checkRaw returns an error unless every raw id is used once.
func checkRaw(raw []messages.RawRecord) error {
	seen := make(map[messages.RawID]struct{}, len(raw))
	for _, r := range raw {
		if _, twice := seen[r.ID]; twice || r.ID == 0 {
			return fmt.Errorf("%w: got %d, want 1 to 65535, each once", messages.ErrRawID, r.ID)
		}
		seen[r.ID] = struct{}{}
	}
	return nil
}

// Drafter decides what a command does without knowing its numbers: it refers to
// them by their index. It runs before the command is appended, outside of any
// transaction, so that the partition serves others meanwhile; a command that rests
// on what the workspace was like says so with [messages.Command.Expected]. An error
// refuses the command: it is the answer, and nothing of the command is left. The
// context ends with the command's deadline. One drafter serves all command
// processors that it was given to, concurrently.
type Drafter func(ctx context.Context, d *DraftContext) error

// DraftContext is a command whose event is being drafted. It is valid until the
// drafter returns, and belongs to the drafter's goroutine.
type DraftContext struct {
	command *messages.Command
	draft   messages.Draft
	// places are those of the raw ids' numbers, as Want returns them.
	places map[messages.RawID]int
	// err is the first of what was asked for that no event can have.
	err error
}

// newDraftContext returns the draft that a command begins with: one number for each
// raw id, and the command's body.
func newDraftContext(m *messages.Command) *DraftContext {
	d := &DraftContext{
		command: m,
		draft:   messages.Draft{Body: m.Body, Date: m.Date, Zone: m.Zone},
		places:  make(map[messages.RawID]int, len(m.RawRecords)),
	}
	for _, raw := range m.RawRecords {
		d.places[raw.ID] = d.Want(raw.Sequence())
	}
	return d
}

// Command returns the command. The drafter must not change it.
func (d *DraftContext) Command() *messages.Command { return d.command }

// Want asks for a number of a sequence and returns what Insert takes for it.
func (d *DraftContext) Want(seq messages.SeqID) int {
	d.draft.Wanted = append(d.draft.Wanted, messages.Wanted{Seq: seq, Count: 1})
	return len(d.draft.Wanted) - 1
}

// Bring gives the event a number of an old system, as [messages.Draft.Brought] does, and returns what Insert takes for
// it. Those that are brought along come before all that are wanted.
func (d *DraftContext) Bring(n messages.SequenceNumber) int {
	d.draft.Brought = append(d.draft.Brought, n)
	return -len(d.draft.Brought)
}

// Move moves a sequence forward, as [messages.Draft.Moves] does.
func (d *DraftContext) Move(n messages.SequenceNumber) { d.draft.Moves = append(d.draft.Moves, n) }

// Number returns what Insert takes for the number that a raw id will get, and ErrRawID if
// the command has no such.
func (d *DraftContext) Number(raw messages.RawID) (int, error) {
	i, ok := d.places[raw]
	if !ok {
		return 0, noSuchRaw(raw)
	}
	return i, nil
}

// SetDate sets the event's business date. Default: the command's date.
func (d *DraftContext) SetDate(date calendar.Date) { d.draft.Date = date }

// SetZone sets the time zone that the workspace gets, as in [messages.Draft]. Default: the command's zone.
func (d *DraftContext) SetZone(name string) { d.draft.Zone = name }

// SetBody sets the event's body. Default: the command's body.
func (d *DraftContext) SetBody(body []byte) { d.draft.Body = body }

// Insert adds a new record to the event, whose id is a number that Want, Bring or Number has returned.
func (d *DraftContext) Insert(number int, data []byte) {
	d.draft.Records = append(d.draft.Records, messages.DraftRecord{Number: number, New: true, Data: data})
}

// InsertID adds a new record with an explicit id: the id's sequence goes on above
// it. With the zero id the command is refused with ErrUnknownSequence.
func (d *DraftContext) InsertID(id messages.RecordID, data []byte) {
	d.add(messages.DraftRecord{ID: id, New: true, Data: data})
}

// Update adds a new state of a record to the event. If the record is ahead of its
// sequence, the command is refused with a [*messages.RecordAheadError]; with the zero
// id it is refused with ErrUnknownSequence.
func (d *DraftContext) Update(id messages.RecordID, data []byte) {
	d.add(messages.DraftRecord{ID: id, Data: data})
}

// add adds a record with an explicit id. The zero one would stand for a number's index.
func (d *DraftContext) add(r messages.DraftRecord) {
	if r.ID == (messages.RecordID{}) && d.err == nil {
		d.err = fmt.Errorf("%w: record %d: got id %v", messages.ErrUnknownSequence, len(d.draft.Records), r.ID)
	}
	d.draft.Records = append(d.draft.Records, r)
}

// numbered returns the draft. Its records refer to numbers by their index among the event's: what is brought along
// comes first, and how much that is, is known now.
func (d *DraftContext) numbered() messages.Draft {
	for i := range d.draft.Records {
		switch r := &d.draft.Records[i]; {
		case r.ID != (messages.RecordID{}), r.Number < -len(d.draft.Brought): // the latter is refused
		case r.Number < 0:
			r.Number = -1 - r.Number
		default:
			r.Number += len(d.draft.Brought)
		}
	}
	return d.draft
}

func noSuchRaw(raw messages.RawID) error {
	return fmt.Errorf("%w: got %d, the command has no such record", messages.ErrRawID, raw)
}

// appendCommand drafts a command and appends it.
func (p *commandProcessor) appendCommand(ctx context.Context, s *Sequencer, m *messages.Command) (*messages.CommandDone, error) {
	d := newDraftContext(m)
	if err := p.call(m.Trace, func() error { return p.handle.config.Drafter(ctx, d) }); err != nil {
		return nil, err
	}
	if d.err != nil {
		return nil, d.err
	}
	done, err := s.Append(ctx, AppendTo{Workspace: m.Workspace, Kind: m.Kind, DedupID: m.DedupID, Expected: m.Expected}, d.numbered())
	if err != nil {
		return nil, err
	}
	ids := make(map[messages.RawID]messages.RecordID, len(d.places))
	for raw, i := range d.places {
		ids[raw] = done.Numbers[len(d.draft.Brought)+i].Record()
	}
	return &messages.CommandDone{
		Partition:    done.Partition,
		PLogOffset:   done.PLogOffset,
		WLogOffset:   done.WLogOffset,
		RegisteredAt: done.RegisteredAt,
		IDs:          ids,
		Numbers:      done.Numbers,
		Repeated:     done.Repeated,
	}, nil
}
