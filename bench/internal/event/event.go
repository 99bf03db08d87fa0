// Package event makes the bytes of the events that every row stores.
package event

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// The parts of an event, in bytes.
const (
	HeaderSize = 60 // about what offsets, numbers and lengths take in an encoded event
	BodySize   = 300
	RecordSize = 100
	Records    = 2
	// MessageSize is the body and the records, without a header.
	MessageSize = BodySize + Records*RecordSize
	// ValueSize is the whole event.
	ValueSize = HeaderSize + MessageSize
)

// The body begins with random bytes; then it says who made the event.
const (
	callerAt = 8
	numberAt = 16
)

// Source makes one caller's events, one after the other, in one buffer: an event
// holds until the next one is made. Its bytes are random, so that nobody can
// compress them.
type Source struct {
	random     *rand.Rand
	workspaces int
	made       uint64
	value      [ValueSize]byte
}

// NewSource returns the source of a caller, for a number of workspaces.
func NewSource(caller, workspaces int) *Source {
	s := &Source{
		random:     rand.New(rand.NewPCG(uint64(caller), uint64(workspaces))),
		workspaces: workspaces,
	}
	for i := range s.value {
		s.value[i] = byte(s.random.Uint32())
	}
	binary.BigEndian.PutUint64(s.value[:], uint64(caller))
	binary.BigEndian.PutUint64(s.Body()[callerAt:], uint64(caller))
	return s
}

// NewSources returns a source for each caller.
func NewSources(callers, workspaces int) []*Source {
	sources := make([]*Source, callers)
	for i := range sources {
		sources[i] = NewSource(i, workspaces)
	}
	return sources
}

// Next makes the next event and returns its workspace, from 0 on, each as likely
// as any other.
func (s *Source) Next() int {
	s.made++
	binary.BigEndian.PutUint64(s.value[8:], s.made)
	binary.BigEndian.PutUint64(s.Body(), s.random.Uint64())
	binary.BigEndian.PutUint64(s.Body()[numberAt:], s.made)
	return s.random.IntN(s.workspaces)
}

// MadeBy says which caller made the event with a body, and as which one of its events,
// from 1 on.
func MadeBy(body []byte) (caller int, number uint64, err error) {
	if len(body) != BodySize {
		return 0, 0, fmt.Errorf("body: got %d bytes, want %d", len(body), BodySize)
	}
	return int(binary.BigEndian.Uint64(body[callerAt:])), binary.BigEndian.Uint64(body[numberAt:]), nil
}

// Value is the whole event.
func (s *Source) Value() []byte { return s.value[:] }

// Message is the body and the records.
func (s *Source) Message() []byte { return s.value[HeaderSize:] }

// Body is the event's body.
func (s *Source) Body() []byte { return s.value[HeaderSize : HeaderSize+BodySize] }

// Record is the event's record i, from 0 on.
func (s *Source) Record(i int) []byte {
	at := HeaderSize + BodySize + i*RecordSize
	return s.value[at : at+RecordSize]
}
