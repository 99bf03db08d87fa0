package actors

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// copyParts gives a message its own copy of all that it refers to: it may still be on
// its way to the store when its sender goes on, since its context has ended, or the
// partition.
func copyParts(m *messages.Append) {
	if m.Expected != nil {
		m.Expected = new(*m.Expected)
	}
	size, records := 0, 0
	for i := range m.Drafts {
		d := &m.Drafts[i]
		size += len(d.Body)
		records += len(d.Records)
		for j := range d.Records {
			size += len(d.Records[j].Data)
		}
	}
	own := arena{bytes: make([]byte, 0, size), records: make([]messages.DraftRecord, 0, records)}
	drafts := make([]messages.Draft, 0, len(m.Drafts))
	for i := range m.Drafts {
		drafts = append(drafts, own.draft(&m.Drafts[i]))
	}
	m.Drafts = drafts
}

// arena is memory for the parts of drafts.
type arena struct {
	bytes   []byte
	records []messages.DraftRecord
}

func (a *arena) draft(d *messages.Draft) messages.Draft {
	from := len(a.records)
	for i := range d.Records {
		r := d.Records[i]
		r.Data = a.copy(r.Data)
		a.records = append(a.records, r)
	}
	return messages.Draft{
		Wanted:  slices.Clone(d.Wanted),
		Body:    a.copy(d.Body),
		Records: a.records[from:len(a.records):len(a.records)],
	}
}

func (a *arena) copy(b []byte) []byte {
	from := len(a.bytes)
	a.bytes = append(a.bytes, b...)
	return a.bytes[from:len(a.bytes):len(a.bytes)]
}
