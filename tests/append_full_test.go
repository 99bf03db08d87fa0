package tests

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestAppendFullLog: when log.db may not grow, appends are refused with nothing left,
// and what is there can still be repeated. With more room those that were refused are
// written.
func TestAppendFullLog(t *testing.T) {
	s := newSite(t, 1, partition.Settings{})
	s.bolt = bolt.Options{MaxSize: 1 << 20, MmapSize: 1 << 20}
	d := s.run(t)
	l := &book{ledger: newLedger()}
	var refused []*begun
	var all sync.WaitGroup
	ctx := limit(t)
	body := strings.Repeat("x", 5000)
	for client := range uint64(8) {
		all.Go(func() {
			for n, refusals := uint64(0), 0; refusals < 3; n++ {
				b := &begun{Workspace: messages.WSID(client % 3), ID: idOf(client, n), Bodies: []string{fmt.Sprint(client, n, body), fmt.Sprint(client, n)}}
				l.write(entry{Begun: b})
				each, err := b.send(ctx, d.app, nil)
				if err == nil {
					l.write(entry{Appended: b.promised(each)})
					continue
				}
				refusals++
				l.write(entry{Refused: b.Bodies})
				l.mu.Lock()
				refused = append(refused, b)
				if !errors.Is(err, storage.ErrFull) {
					l.trouble = append(l.trouble, err.Error())
				}
				l.mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(l.acked) == 0 {
		t.Fatal("nothing fitted")
	}
	if state := d.app.Status()[0].State; state != messages.StateNormal && state != messages.StateAlarming {
		t.Errorf("got partition %v after ErrFull, want it to go on", state)
	}
	l.resolve(t, d)
	l.compare(t, d.store)
	if end := d.ends(t)[0]; end != messages.PLogOffset(len(l.acked)) {
		t.Errorf("the log ends at %d, want %d: a refusal has left something", end, len(l.acked))
	}
	d.stop(t)

	s.bolt = bolt.Options{}
	d = s.run(t)
	clear(l.refused)
	for _, b := range refused {
		l.write(entry{Begun: b})
	}
	l.resolve(t, d)
	l.compare(t, d.store)
	if end := d.ends(t)[0]; end != messages.PLogOffset(len(l.acked)) {
		t.Errorf("the log ends at %d, want %d", end, len(l.acked))
	}
	d.stop(t)
}

// TestAppendTailFull: when the tail is full, appends are refused as busy with nothing
// left, and go on as soon as a flush has made room.
func TestAppendTailFull(t *testing.T) {
	s := newSite(t, 1, partition.Settings{FlushInterval: time.Hour, RetryDelay: time.Millisecond})
	s.bolt = bolt.Options{TailEvents: 20}
	s.faulty = true
	d := s.run(t)
	gate := storagetest.NewGate()
	s.faults.Plant(storagetest.Fault{Op: storagetest.OpFlush, Do: storagetest.Hold(gate), Times: 1})
	wrote := 0
	group := func(size int) error {
		b := &begun{Workspace: messages.WSID(wrote % 3)}
		for i := range size {
			b.Bodies = append(b.Bodies, fmt.Sprint(i))
		}
		_, err := b.send(limit(t), d.app, nil)
		if err == nil {
			wrote += size
		}
		return err
	}
	for wrote < 18 {
		check(t, group(3))
	}
	full := func() {
		t.Helper()
		busy, ok := errors.AsType[*messages.BusyError](group(3))
		if !ok || busy.Reason != messages.BusyUnflushed || busy.RetryAfter <= 0 {
			t.Errorf("got %v, want busy because of what is not flushed, and when to retry", busy)
		}
	}
	full()
	check(t, gate.Await(limit(t))) // the refusal has asked for a flush
	full()
	check(t, group(2)) // for this one there is room
	full()
	if end := d.ends(t)[0]; end != 20 {
		t.Errorf("the log ends at %d, want 20: a refusal has left something", end)
	}
	gate.Release()
	for wrote < 200 {
		s.await(t, "there is room", func() bool {
			err := group(1 + wrote%20)
			if err != nil {
				wantError(t, err, messages.ErrBusy)
			}
			return err == nil
		})
	}
	if end := d.ends(t)[0]; end != messages.PLogOffset(wrote) {
		t.Errorf("the log ends at %d, want %d", end, wrote)
	}
	d.stop(t)
}
