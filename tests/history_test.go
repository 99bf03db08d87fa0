package tests

import (
	"context"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// history writes a synthetic log straight into a store, in large batches, as
// several partitions would have.
type history struct {
	store      storage.Store
	workspaces uint64
	partitions []writer
	last       map[messages.WSID]*[3]messages.Number
}

// writer is where one partition stands.
type writer struct {
	register storage.Register
	// at is the time of the events.
	at    messages.Timestamp
	batch []messages.Event
}

const historyBatch = 4096

func newHistory(t testing.TB, store storage.Store, workspaces uint64) *history {
	t.Helper()
	h := &history{store: store, workspaces: workspaces, last: make(map[messages.WSID]*[3]messages.Number)}
	for p := range store.Descriptor().Partitions {
		register := must(store.TakeEpoch(limit(t), messages.PartitionID(p)))(t)
		h.partitions = append(h.partitions, writer{register: register})
	}
	return h
}

// resume lets workspaces go on whose last numbers are known.
func (h *history) resume(t testing.TB, given map[messages.WSID]messages.Number) {
	t.Helper()
	for ws, n := range given {
		var last messages.Event
		for e, err := range h.store.WLog(limit(t), ws, messages.WLogOffset(n)) {
			check(t, err)
			last = e
		}
		receipt := messages.Number(999)
		for e, err := range h.store.WLog(limit(t), ws, 1) {
			check(t, err)
			for _, given := range e.Numbers {
				if given.Seq == seqReceipt {
					receipt = given.Number
				}
			}
		}
		h.last[ws] = &[3]messages.Number{messages.Number(last.WLogOffset), n, receipt}
		p := &h.partitions[messages.PartitionOf(ws, uint32(len(h.partitions)))]
		p.at = max(p.at, p.register.LastRegisteredAt)
	}
}

// write adds n events with two numbers each, workspace after workspace.
func (h *history) write(t testing.TB, n int) {
	t.Helper()
	for i := range uint64(n) {
		h.add(t, messages.WSID(i%h.workspaces))
	}
	for p := range h.partitions {
		h.commit(t, &h.partitions[p])
	}
}

func (h *history) add(t testing.TB, ws messages.WSID) {
	t.Helper()
	last := h.last[ws]
	if last == nil {
		last = &[3]messages.Number{0, 0, 999}
		h.last[ws] = last
	}
	for i := range last {
		last[i]++
	}
	p := messages.PartitionOf(ws, uint32(len(h.partitions)))
	w := &h.partitions[p]
	w.register.Last++
	w.batch = append(w.batch, messages.Event{
		Kind: messages.EventBusiness, Epoch: w.register.Epoch, Partition: p, PLogOffset: w.register.Last,
		Workspace: ws, WorkspaceKind: kindShop, WLogOffset: messages.WLogOffset(last[0]), RegisteredAt: max(w.at, 1),
		Numbers: []messages.SequenceNumber{{Seq: seqInvoice, Number: last[1]}, {Seq: seqReceipt, Number: last[2]}},
		Body:    make([]byte, 64),
	})
	if len(w.batch) == historyBatch {
		h.commit(t, w)
	}
}

func (h *history) commit(t testing.TB, w *writer) {
	t.Helper()
	if len(w.batch) == 0 {
		return
	}
	check(t, h.store.Append(context.Background(), storage.Batch{
		Partition: w.batch[0].Partition, Epoch: w.register.Epoch, Events: w.batch,
	}))
	w.batch = w.batch[:0]
}
