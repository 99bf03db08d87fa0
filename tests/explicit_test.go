package tests

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// An explicit id that nobody announced must not let its number be given again.
func TestExplicitIDsLiftTheirSequence(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	d := s.run(t)
	explicit := messages.Record{ID: messages.RecordID{Seq: seqInvoice, Number: 5}, New: true}

	check(t, d.open(t, 7).Commit(limit(t), nil, explicit))
	d.invoice(t, 7, 6)

	tx := d.open(t, 7)
	explicit.ID.Number = 9
	if _, err := tx.Event(nil, explicit); !errors.Is(err, actors.ErrNotRaised) {
		t.Errorf("event without Raise: got %v, want %v", err, actors.ErrNotRaised)
	}
	check(t, tx.Raise(limit(t), explicit.ID))
	if err := tx.Write(limit(t), nil); !errors.Is(err, actors.ErrNotRaised) {
		t.Errorf("event without the record: got %v, want %v", err, actors.ErrNotRaised)
	}
	check(t, tx.Commit(limit(t), nil, explicit))
	d.invoice(t, 7, 10)
	d.stop(t)
}
