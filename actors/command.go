package actors

import (
	"context"
	"fmt"

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
