package sequencer

import (
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

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

// TestLateFlushOfNobodyWhileStopping: only the transaction that was abandoned by the stop may
// still be written.
func TestLateFlushOfNobodyWhileStopping(t *testing.T) {
	w := up(t, messages.Settings{TransactionLimit: time.Second, FlushInterval: never})
	w.event(1, kindWide)
	o := w.begun(1, kindWide)
	w.stop()
	w.now += 1_000_000
	w.fire()
	other := o.token
	other.Serial++
	w.mustRefuse(w.ask(nil, &messages.Flush{Token: other}), messages.ErrNoTransaction)
	w.settle()
	w.finish()
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

// TestCacheIsCountedInNumbers, as many as the widest kind has.
func TestCacheIsCountedInNumbers(t *testing.T) {
	w := newWorld(t, messages.Settings{})
	w.config.CacheNumbers = 2*len(testDescriptor().Kinds[0].All()) + 1
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
