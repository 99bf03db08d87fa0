package linear

import (
	"fmt"
	"hash/fnv"
	"maps"

	"github.com/anishathalye/porcupine"

	"github.com/partita-go/partita/messages"
)

// operation is what a client asks of one partition. Its step says whether an answer
// is right in a state, and what the state is afterwards.
type operation interface {
	step(s *state, a *answer) (bool, *state)
	partition() messages.PartitionID
	describe(a *answer) string
}

// state is what a partition holds. It is never changed: a step makes a new one.
type state struct {
	events messages.PLogOffset
	// at is the last time of registration that an answer told.
	at messages.Timestamp
	// sum is a digest of all events in their order.
	sum        uint64
	workspaces map[messages.WSID]*workspace
}

// workspace is what a workspace holds. It is never changed.
type workspace struct {
	events messages.WLogOffset
	sum    uint64
	last   map[messages.SeqID]messages.Number
	rows   map[messages.Number]string
	ids    map[messages.DedupID]written
}

// written is what an append with a deduplication id wrote, and was told.
type written struct {
	first  string
	answer answer
}

// initial are the initial values of the sequences that clients use.
var initial = map[messages.SeqID]messages.Number{seqInvoice: 1, seqReceipt: 1000}

// model is one partition.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: byPartition,
		Init:      func() any { return &state{} },
		Step: func(s, input, output any) (bool, any) {
			return input.(operation).step(s.(*state), output.(*answer))
		},
		Equal: func(a, b any) bool {
			x, y := a.(*state), b.(*state)
			return x.sum == y.sum && x.at == y.at
		},
		Hash:              func(s any) uint64 { return s.(*state).sum },
		DescribeOperation: func(input, output any) string { return input.(operation).describe(output.(*answer)) },
		DescribeState: func(s any) string {
			x := s.(*state)
			text := fmt.Sprintf("%d events", x.events)
			for ws := range messages.WSID(workspaces) {
				if w := x.workspaces[ws]; w != nil {
					text += fmt.Sprintf("; workspace %d: %d events, last %v", ws, w.events, w.last)
				}
			}
			return text
		},
	}
}

func byPartition(all []porcupine.Operation) [][]porcupine.Operation {
	parts := make([][]porcupine.Operation, partitions)
	for _, o := range all {
		p := o.Input.(operation).partition()
		parts[p] = append(parts[p], o)
	}
	return parts
}

// of returns a workspace, which may not be changed.
func (s *state) of(ws messages.WSID) *workspace {
	if w := s.workspaces[ws]; w != nil {
		return w
	}
	return &workspace{}
}

// with returns the state in which a workspace is another.
func (s *state) with(ws messages.WSID, w *workspace) *state {
	next := *s
	next.workspaces = maps.Clone(s.workspaces)
	if next.workspaces == nil {
		next.workspaces = make(map[messages.WSID]*workspace)
	}
	next.workspaces[ws] = w
	return &next
}

func (w *workspace) clone() *workspace {
	next := &workspace{events: w.events, sum: w.sum, last: maps.Clone(w.last), rows: maps.Clone(w.rows), ids: maps.Clone(w.ids)}
	if next.last == nil {
		next.last = make(map[messages.SeqID]messages.Number)
		next.rows = make(map[messages.Number]string)
		next.ids = make(map[messages.DedupID]written)
	}
	return next
}

// next gives the next number of a sequence.
func (w *workspace) next(seq messages.SeqID) messages.SequenceNumber {
	n := max(w.last[seq]+1, initial[seq])
	w.last[seq] = n
	return messages.SequenceNumber{Seq: seq, Number: n}
}

// eventSum is a digest of one event.
func eventSum(ws messages.WSID, o messages.WLogOffset, body string, numbers []messages.SequenceNumber) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %v %s", ws, o, numbers, body)
	return h.Sum64()
}

// chain is the digest of what was there before and one more event.
func chain(before, event uint64) uint64 {
	const prime = 0x9E3779B97F4A7C15
	return (before^event)*prime + 1
}
