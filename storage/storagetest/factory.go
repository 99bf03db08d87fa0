package storagetest

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// MemoryFactory makes [Memory] stores for [Run].
type MemoryFactory struct{}

var (
	_ Crasher     = MemoryFactory{}
	_ TailLimiter = MemoryFactory{}
)

// Open returns a new store.
func (MemoryFactory) Open(t testing.TB, d messages.Descriptor) storage.Store {
	t.Helper()
	m, err := NewMemory(d)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return m
}

// Reopen returns a new handle on the same contents.
func (MemoryFactory) Reopen(_ testing.TB, s storage.Store) storage.Store {
	return s.(*Memory).Reopen()
}

// Crash loses nothing: a memory's writes are durable at once.
func (f MemoryFactory) Crash(t testing.TB, s storage.Store) storage.Store { return f.Reopen(t, s) }

// OpenLimited returns a new store with a bounded tail.
func (f MemoryFactory) OpenLimited(t testing.TB, d messages.Descriptor, events int) storage.Store {
	t.Helper()
	m := f.Open(t, d)
	m.(*Memory).LimitTail(events)
	return m
}
