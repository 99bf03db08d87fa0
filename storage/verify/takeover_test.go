package verify_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// newTakenOver returns a store in which workspace 3 has taken over from an old system; the last event is not projected.
func newTakenOver(t *testing.T) storage.Store {
	t.Helper()
	m, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	invoice := func(by messages.Number) storagetest.Ahead {
		return storagetest.Ahead{Seq: storagetest.SeqInvoice, By: by}
	}
	receipt := func(by messages.Number) storagetest.Ahead {
		return storagetest.Ahead{Seq: storagetest.SeqReceipt, By: by}
	}
	p := storagetest.Take(t, m, 0)
	p.Append(t,
		storagetest.Spec{Workspace: 3, Bring: []storagetest.Ahead{invoice(2), receipt(5)}, Give: []messages.SeqID{storagetest.SeqInvoice, storagetest.SeqReceipt}},
		storagetest.Spec{Workspace: 3, Move: []storagetest.Ahead{invoice(40), receipt(9)}},
		storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqInvoice, storagetest.SeqReceipt}},
		storagetest.Spec{Workspace: 3, Bring: []storagetest.Ahead{invoice(3)}, Move: []storagetest.Ahead{invoice(0)}},
	)
	p.FlushTo(t, 4)
	return m
}

func TestTakenOverIsFaultless(t *testing.T) {
	if r := run(t, newTakenOver(t), verify.Options{}); r.Err() != nil {
		t.Error(r)
	}
}

// A hole of the old system is no fault, but a number that nobody brought along and that is not the next one is.
func TestFaultsOfWhatIsTakenOver(t *testing.T) {
	event := func(offset messages.PLogOffset, alter func(*messages.Event)) doctored {
		return change(0, offset, alter)
	}
	wlog := func(alter func(e *messages.Event)) doctored {
		return doctored{wlogs: func(_ messages.WSID, events []messages.Event) []messages.Event {
			alter(&events[1])
			return events
		}}
	}
	differs := place{verify.CheckWLog, 0, 2, "event 2 of WLog differs"}
	for _, c := range []planted{
		{"a number was not brought along", event(1, func(e *messages.Event) { e.Brought = 0 }),
			place{verify.CheckSequence, 0, 1, "sequence 17: number is 1002, want 1000"}},
		{"a number of a period was not brought along", event(1, func(e *messages.Event) { e.Brought = 1 }),
			place{verify.CheckSequence, 0, 1, "sequence 19 in 2026-03-29: number is 6, want 1"}},
		{"what is brought along goes back", event(4, func(e *messages.Event) { e.Numbers[0].Number = 1044 }),
			place{verify.CheckSequence, 0, 4, "sequence 17: number is 1044, want 1046"}},
		{"the moves are lost", event(2, func(e *messages.Event) { e.Moves = nil }),
			place{verify.CheckSequence, 0, 3, "sequence 17: number is 1045, want 1004"}},
		{"the move of a period is lost", event(2, func(e *messages.Event) { e.Moves = e.Moves[:1] }),
			place{verify.CheckSequence, 0, 3, "sequence 19 in 2026-03-29: number is 18, want 8"}},
		{"moved back", event(2, func(e *messages.Event) { e.Moves[0].Number = 1003 }),
			place{verify.CheckSequence, 0, 2, "sequence 17: moved to 1003, want more than 1003"}},
		{"moved back in a period", event(2, func(e *messages.Event) { e.Moves[1].Number = 7 }),
			place{verify.CheckSequence, 0, 2, "sequence 19 in 2026-03-29: moved to 7, want more than 7"}},
		{"moved above the largest number", event(2, func(e *messages.Event) {
			e.Moves[0] = messages.SequenceNumber{Seq: storagetest.SeqBadge, Number: storagetest.LargestBadge + 1}
		}), place{verify.CheckSequence, 0, 2, "sequence 21: moved to 6, want more than 0 and at most 5"}},
		{"moved before the first number", event(2, func(e *messages.Event) {
			e.Moves[0] = messages.SequenceNumber{Seq: storagetest.SeqCase, Period: 20260301, Number: storagetest.InitialCase - 1}
		}), place{verify.CheckSequence, 0, 2, "moved to 99, want more than 99"}},
		{"moved in no period", event(2, func(e *messages.Event) { e.Moves[1].Period = 0 }),
			place{verify.CheckEvent, 0, 2, "move: sequence 19: got period none"}},
		{"a sequence is moved that there is not", event(2, func(e *messages.Event) { e.Moves[0].Seq = 99 }),
			place{verify.CheckEvent, 0, 2, "move of sequence 99"}},
		{"the offset is moved", event(2, func(e *messages.Event) { e.Moves[0].Seq = messages.SeqWLogOffset }),
			place{verify.CheckEvent, 0, 2, "move of sequence 1"}},
		{"WLog() has other moves", wlog(func(e *messages.Event) { e.Moves[0].Number++ }), differs},
		{"WLog() has numbers instead of moves", wlog(func(e *messages.Event) { e.Numbers, e.Moves = e.Moves, nil }), differs},
		{"WLog() has other numbers brought along", wlog(func(e *messages.Event) { e.Brought++ }), differs},
		{"the tail knows of no moves", doctored{tail: func(tail []messages.Numbering) []messages.Numbering {
			for i := range tail {
				tail[i].Numbers = tail[i].Numbers[:1]
			}
			return tail
		}}, place{verify.CheckTail, 0, 4, "tail differs"}},
		{"a stored number is that before the move", doctored{numbers: func(n *storage.WorkspaceNumbers) { n.Numbers[1].Number = 1003 }},
			place{verify.CheckNumbers, 0, 0, "workspace 3: stored numbers are"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.d.Store = newTakenOver(t)
			r := run(t, c.d, verify.Options{})
			found := slices.ContainsFunc(r.Faults, func(f verify.Fault) bool {
				return f.Check == c.at.check && f.Partition == c.at.partition && f.PLogOffset == c.at.offset && strings.Contains(f.Text, c.at.words)
			})
			if !found || !errors.Is(r.Err(), verify.ErrFaults) {
				t.Errorf("want a fault %+v, got %s", c.at, r)
			}
		})
	}
}
