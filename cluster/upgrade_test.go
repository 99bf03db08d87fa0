package cluster

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
)

// TestDescriptorIsRolledOver restarts the nodes one after the other with a descriptor that has one more sequence, while
// appends go on. When all have it, it is used.
func TestDescriptorIsRolledOver(t *testing.T) {
	t.Parallel()
	const receipt messages.SeqID = 17
	var newer atomic.Bool
	r := newRig(t, func(_ replog.NodeID, o *Options) {
		if newer.Load() {
			d := descriptor()
			d.Kinds[0].Sequences = append(d.Kinds[0].Sequences, messages.Sequence{ID: receipt, Name: "receipts", Initial: 100})
			o.Application.Descriptor = d
		}
	})
	count := 1
	r.append(r.owner(), 1, count)
	newer.Store(true)
	for _, id := range names {
		r.stop(id)
		r.start(id)
		for _, name := range names { // whoever leads, has the old one or the new one
			count++
			r.append(r.node(name), 1, count)
		}
	}
	for i, name := range names {
		count++
		draft := partition.Draft{Wanted: []partition.Wanted{{Seq: invoice}, {Seq: receipt}}, Body: []byte(`{}`)}
		done, err := r.node(name).Append(r.ctx, to(1, count), draft)
		if err != nil {
			t.Fatalf("node %s: %v", name, err)
		}
		want := []messages.SequenceNumber{{Seq: invoice, Number: messages.Number(count)}, {Seq: receipt, Number: messages.Number(100 + i)}}
		if !slices.Equal(done.Numbers, want) {
			t.Errorf("node %s: got %v, want %v", name, done.Numbers, want)
		}
	}
	for _, name := range names {
		r.awaitEvents(r.node(name), count)
		if s := r.node(name).Status(); s.Stopped != nil || s.Failed != nil {
			t.Errorf("node %s: got %+v", name, s)
		}
	}
}
