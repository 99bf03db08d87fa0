package bolt

import (
	"context"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
)

// What is read at once is bounded by what it takes in memory: an event with as many numbers as
// one can have takes a few bytes in the file, and more than a chunk here.
func TestReadsAreBoundedInMemory(t *testing.T) {
	s := open(t, t.TempDir(), testDescriptor(1, messages.TrustNone), Options{})
	w := takeOver(t, s, 0)
	const events = 20
	for range events {
		e := w.event(1)
		next := e.Numbers[1]
		for len(e.Numbers) < messages.MaxEventNumbers {
			next.Number++
			e.Numbers = append(e.Numbers, next)
		}
		expect.NoError(t, w.try(e))
	}
	chunks := -1 // it is asked once before the first
	r := fetch.Reader{Log: s.log, Enter: func(context.Context) error { chunks++; return nil }}
	all := r.Events(t.Context(), func() (fetch.Source, error) { return fetch.LogSource(1, events), nil })
	expect.Equal(t, events, len(collectEvents(t, fetch.WithoutLSN(all))))
	expect.Equal(t, events, chunks)
	closeStore(t, s)
}
