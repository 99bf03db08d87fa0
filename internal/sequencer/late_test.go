package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// abandoned returns a world whose partition took a new epoch while a transaction was
// open, and the transaction's owner.
func abandoned(t *testing.T, written bool) (*world, *owner) {
	w := up(t, messages.Settings{TransactionLimit: time.Second, FlushInterval: never})
	w.event(1, kindWide)
	o := w.begun(1, kindWide)
	if written {
		w.write(o)
	}
	w.now += 1_000_000
	w.fire()
	w.mustBe(messages.StateInitializing)
	return w, o
}

// TestFlushOfNobody: a token that was not granted, or that went back, is wrong use.
func TestFlushOfNobody(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide)
	o := w.begun(1, kindWide)
	w.cancel(o)
	for _, token := range []messages.Token{
		{},
		o.token,
		{Partition: testPartition + 1, Epoch: 1, PLogOffset: 1},
		{Partition: testPartition, Epoch: 1, PLogOffset: 99},
		{Partition: testPartition, Epoch: 99, PLogOffset: 99},
	} {
		w.mustRefuse(w.ask(nil, &messages.Flush{Token: token}), messages.ErrNoTransaction)
	}
	w.finish()
}

// TestLateFlushesAreBounded: while nobody can ask the log, they are refused in the
// end.
func TestLateFlushesAreBounded(t *testing.T) {
	w, o := abandoned(t, true)
	for range maxLate {
		w.flush(o)
	}
	w.mustBusy(w.flush(o), messages.BusyMailboxFull)
	w.settle()
	w.finish()
}

// TestLateFlushWhileStopping: a stop takes a new epoch, so that an absent event cannot
// come any more.
func TestLateFlushWhileStopping(t *testing.T) {
	for name, writes := range map[string]bool{"present": true, "absent": false} {
		t.Run(name, func(t *testing.T) {
			w := up(t, messages.Settings{TransactionLimit: time.Second, FlushInterval: never})
			w.event(1, kindWide)
			o := w.begun(1, kindWide)
			s := w.stop()
			w.now += 1_000_000
			w.fire()
			if w.core.txn.open {
				t.Fatal("the limit has passed, but the transaction is open")
			}
			if writes {
				w.write(o)
			}
			c := w.flush(o)
			w.settleBut(flusherLeaf)
			if writes {
				mustFlush(t, c)
			} else {
				w.mustRefuse(c, messages.ErrFenced)
			}
			w.settle()
			w.mustStop(s, true)
			w.finish()
		})
	}
}

// TestLateFlushOfNobodyWhileStopping: the stop takes a new epoch, which the log speaks under.
func TestLateFlushOfNobodyWhileStopping(t *testing.T) {
	w := up(t, messages.Settings{TransactionLimit: time.Second, FlushInterval: never})
	w.event(1, kindWide)
	o := w.begun(1, kindWide)
	w.stop()
	w.now += 1_000_000
	w.fire()
	other := o.token
	other.Serial++
	c := w.ask(nil, &messages.Flush{Token: other})
	w.settle()
	w.mustRefuse(c, messages.ErrFenced)
	w.finish()
}

// flushSettled flushes and lets the log be asked.
func (w *world) flushSettled(o *owner) *call {
	c := w.flush(o)
	w.settle()
	return c
}

func mustFlush(t *testing.T, c *call) {
	t.Helper()
	if _, ok := c.reply.(*messages.Flushed); !ok {
		t.Fatalf("got %T (%v), want flushed", c.reply, refusalOf(c))
	}
}

// TestLateFlushesAreToldApart: whatever the order in which the log answers.
func TestLateFlushesAreToldApart(t *testing.T) {
	w, absent := abandoned(t, false)
	w.settle()
	present := w.begun(1, kindWide)
	w.write(present)
	w.actualize(present)
	w.settle()
	fenced, flushed := w.flush(absent), w.flush(present)
	w.tell(&messages.Found{Generation: w.core.generation, Token: present.token, Present: true})
	mustFlush(t, flushed)
	w.tell(&messages.Found{Generation: w.core.generation, Token: absent.token})
	w.mustRefuse(fenced, messages.ErrFenced)
}

// TestLoadsAreForgotten: those that have returned do not count as waiting.
func TestLoadsAreForgotten(t *testing.T) {
	w := up(t, messages.Settings{})
	for i := range maxAwaiting + 1 {
		w.cancel(w.begun(messages.WSID(2*i+1), kindWide))
	}
	if !w.core.TakesRequests() {
		t.Error("takes no requests, though nobody waits")
	}
	w.finish()
}

// TestCacheIsCountedInNumbers, as many as the widest kind has: three that are built in, three that restart, and of
// those 2, 4 and 1 periods.
func TestCacheIsCountedInNumbers(t *testing.T) {
	w := newWorld(t, messages.Settings{})
	w.config.CacheNumbers = 2*13 + 1
	w.begin()
	w.settle()
	for i := range 5 {
		w.cancel(w.begun(messages.WSID(2*i+1), kindBare))
	}
	if n := w.core.cache.Len(); n != 2 {
		t.Errorf("got %d workspaces in the cache, want 2", n)
	}
	w.finish()
}
