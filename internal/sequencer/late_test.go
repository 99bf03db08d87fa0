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

func TestLateFlush(t *testing.T) {
	t.Run("present", func(t *testing.T) {
		w, o := abandoned(t, true)
		w.settle()
		mustFlush(t, w.flushSettled(o))
		mustFlush(t, w.flushSettled(o))
		w.finish()
	})
	t.Run("absent", func(t *testing.T) {
		w, o := abandoned(t, false)
		w.settle()
		w.mustRefuse(w.flushSettled(o), messages.ErrFenced)
		// Also when somebody else's event has come to the same offset.
		w.event(3, kindWide)
		w.mustRefuse(w.flushSettled(o), messages.ErrFenced)
		w.finish()
	})
	t.Run("while actualizing, written before the take-over", func(t *testing.T) {
		w, o := abandoned(t, false)
		c := w.flush(o)
		if c.reply != nil {
			t.Fatalf("answered before the log was read: %+v", c.reply)
		}
		w.write(o)
		w.settle()
		mustFlush(t, c)
		w.finish()
	})
	t.Run("while actualizing, absent", func(t *testing.T) {
		w, o := abandoned(t, false)
		c := w.flush(o)
		w.settle()
		w.mustRefuse(c, messages.ErrFenced)
		w.finish()
	})
	t.Run("error", func(t *testing.T) {
		w, o := abandoned(t, true)
		w.settle()
		w.failFind = 1
		w.mustRefuse(w.flushSettled(o), messages.ErrOutcomeUnknown)
		mustFlush(t, w.flushSettled(o))
		w.finish()
	})
	t.Run("asked again after another take-over", func(t *testing.T) {
		w, o := abandoned(t, true)
		w.settle()
		other := w.begun(1, kindWide)
		c := w.flush(o)
		w.actualize(other)
		w.settle()
		mustFlush(t, c)
		w.finish()
	})
	t.Run("old answer after another take-over", func(t *testing.T) {
		w, o := abandoned(t, true)
		w.settle()
		other := w.begun(1, kindWide)
		c := w.flush(o)
		w.failFind = 1
		w.work(readerLeaf)
		w.actualize(other)
		w.settleBut(readerLeaf)
		w.settle()
		mustFlush(t, c)
		w.finish()
	})
	t.Run("crash in between", func(t *testing.T) {
		w, o := abandoned(t, true)
		w.crash()
		c := w.flush(o)
		w.settle()
		mustFlush(t, c)
		w.finish()
	})
}

// TestRepeatedFlush: the transaction flushed last is known without the log.
func TestRepeatedFlush(t *testing.T) {
	w := up(t, messages.Settings{})
	w.event(1, kindWide)
	o := w.begun(1, kindWide)
	w.commit(o)
	mustFlush(t, w.flush(o))
	w.event(1, kindWide)
	c := w.flush(o)
	if c.reply != nil {
		t.Fatal("want the log to be asked")
	}
	w.settle()
	mustFlush(t, c)
	w.finish()
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

// TestLateFlushWhileStopping: a stop takes no new epoch, so that an absent event may
// still come.
func TestLateFlushWhileStopping(t *testing.T) {
	for name, writes := range map[string]bool{"present": true, "not yet": false} {
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
			w.work(readerLeaf)
			w.deliver(readerLeaf)
			if writes {
				mustFlush(t, c)
			} else {
				w.mustRefuse(c, messages.ErrOutcomeUnknown)
			}
			w.settle()
			w.mustStop(s, false)
			w.finish()
		})
	}
}

func TestActualizeAgain(t *testing.T) {
	w := up(t, messages.Settings{})
	o := w.begun(1, kindWide)
	for range 2 {
		if _, ok := w.actualize(o).reply.(*messages.Actualizing); !ok {
			t.Fatal("an Actualize that is repeated has happened")
		}
	}
	w.settle()
	if _, ok := w.actualize(o).reply.(*messages.Actualizing); !ok || w.core.Status().Actualizations != 2 {
		t.Fatalf("status: %+v", w.core.Status())
	}
	o = w.begun(1, kindWide)
	w.commit(o)
	w.mustRefuse(w.actualize(o), messages.ErrNoTransaction)
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
