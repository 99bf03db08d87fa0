package actors

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// ownAppend is a message that has its own copy of all that it refers to when it is in the
// request lane: it may still be on its way to the store when its sender goes on, since its
// context has ended, or the partition. What most messages need is allocated with it.
type ownAppend struct {
	message  messages.Append
	expected messages.WLogOffset
	draft    [1]messages.Draft
	wanted   [2]messages.Wanted
	records  [2]messages.DraftRecord
}

// newAppend returns a message for a partition, whose draft is borrowed.
func newAppend(draft *messages.Draft) *ownAppend {
	own := &ownAppend{draft: [1]messages.Draft{*draft}}
	own.message.Drafts = own.draft[:]
	return own
}

// address says where the message goes.
func (own *ownAppend) address(to *AppendTo) {
	m := &own.message
	m.Workspace, m.Kind, m.DedupID = to.Workspace, to.Kind, to.DedupID
	if to.Expected != nil {
		own.expected = *to.Expected
		m.Expected = &own.expected
	}
}

func (own *ownAppend) CopyBorrowed() {
	drafts := own.message.Drafts // of one, they are own.draft
	size, records, wanted, taken := 0, 0, 0, 0
	for i := range drafts {
		d := &drafts[i]
		size += len(d.Body)
		wanted += len(d.Wanted)
		taken += len(d.Brought) + len(d.Moves)
		records += len(d.Records)
		for j := range d.Records {
			size += len(d.Records[j].Data)
		}
	}
	parts := arena{
		bytes:   make([]byte, 0, size),
		records: room(own.records[:0], records),
		wanted:  room(own.wanted[:0], wanted),
		taken:   make([]messages.SequenceNumber, 0, taken),
	}
	copies := room(own.draft[:0], len(drafts))
	for i := range drafts {
		copies = append(copies, parts.draft(&drafts[i]))
	}
	own.message.Drafts = copies
}

// ownCommand is a command that has its own copy of all that it refers to, for the same reason.
type ownCommand struct{ messages.Command }

func (own *ownCommand) CopyBorrowed() {
	own.Body, own.RawRecords = slices.Clone(own.Body), slices.Clone(own.RawRecords)
	if own.Expected != nil {
		expected := *own.Expected
		own.Expected = &expected
	}
}

// room returns have if it has room for n.
func room[T any](have []T, n int) []T {
	if n <= cap(have) {
		return have
	}
	return make([]T, 0, n)
}

// arena is memory for the parts of drafts.
type arena struct {
	bytes   []byte
	records []messages.DraftRecord
	wanted  []messages.Wanted
	taken   []messages.SequenceNumber
}

func (a *arena) draft(d *messages.Draft) messages.Draft {
	records := len(a.records)
	for i := range d.Records {
		r := d.Records[i]
		r.Data = copied(&a.bytes, r.Data)
		a.records = append(a.records, r)
	}
	own := *d // what is plain is copied with it
	own.Wanted, own.Body = copied(&a.wanted, d.Wanted), copied(&a.bytes, d.Body)
	own.Brought, own.Moves = copied(&a.taken, d.Brought), copied(&a.taken, d.Moves)
	own.Records = a.records[records:len(a.records):len(a.records)]
	return own
}

// copied appends values to memory that has room for them, and returns the copy.
func copied[T any](memory *[]T, values []T) []T {
	from := len(*memory)
	*memory = append(*memory, values...)
	return (*memory)[from:len(*memory):len(*memory)]
}
