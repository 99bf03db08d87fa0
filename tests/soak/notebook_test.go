package soak

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"

	"github.com/partita-go/partita/messages"
)

// notebook is what one client knows of the events that it has asked for: two bits for
// each, and for each page a sum over what was promised about those that were
// acknowledged. A client numbers its events, and each has its number in its body.
type notebook struct {
	client uint64
	pages  []*page
	next   uint64
}

const pageSize = 1024

// page is what is known of some events that follow one another. An event that is neither
// acknowledged nor open was refused, or has been asked for in vain.
type page struct {
	acked, open set
	// sum is the sum of the digests of the acknowledged events.
	sum uint64
	// seen and found are the same as the log has them.
	seen  set
	found uint64
}

type set [pageSize / 64]uint64

func (s *set) has(i uint64) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s *set) add(i uint64) { s[i/64] |= 1 << (i % 64) }

func (s *set) remove(i uint64) { s[i/64] &^= 1 << (i % 64) }

func (s *set) count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// take returns the number of the next event.
func (n *notebook) take() uint64 {
	if n.next == uint64(len(n.pages))*pageSize {
		n.pages = append(n.pages, new(page))
	}
	n.next++
	return n.next - 1
}

func (n *notebook) at(event uint64) (*page, uint64) { return n.pages[event/pageSize], event % pageSize }

// acknowledged notes what was promised about an event. It reports whether that is the
// first promise.
func (n *notebook) acknowledged(event, digest uint64) bool {
	p, i := n.at(event)
	if p.acked.has(i) {
		return false
	}
	p.open.remove(i)
	p.acked.add(i)
	p.sum += digest
	return true
}

// doubtful notes that nobody knows whether an event is in the log.
func (n *notebook) doubtful(event uint64) {
	p, i := n.at(event)
	p.open.add(i)
}

// found takes an event of the log and returns what is wrong with it, if anything is.
func (n *notebook) found(event, digest uint64) error {
	if event >= n.next {
		return fmt.Errorf("client %d, event %d: nobody has asked for it", n.client, event)
	}
	p, i := n.at(event)
	switch {
	case p.seen.has(i):
		return fmt.Errorf("client %d, event %d: it is there twice", n.client, event)
	case p.acked.has(i):
		p.found += digest
	case !p.open.has(i):
		return fmt.Errorf("client %d, event %d: it was refused and is there", n.client, event)
	}
	p.seen.add(i)
	return nil
}

// close compares what was promised with what was found. It returns how many
// acknowledged events there were, and what is wrong.
func (n *notebook) close() (acked int, faults []error) {
	for at, p := range n.pages {
		first := uint64(at) * pageSize
		acked += p.acked.count()
		missing := false
		for i := range uint64(pageSize) {
			if p.acked.has(i) && !p.seen.has(i) {
				missing = true
				faults = append(faults, fmt.Errorf("client %d, event %d: it was acknowledged and is not there", n.client, first+i))
			}
		}
		if p.sum != p.found && !missing {
			faults = append(faults, fmt.Errorf("client %d, events %d to %d: one is not as it was acknowledged", n.client, first, first+pageSize-1))
		}
	}
	return acked, faults
}

// promise is what an acknowledgement says about an event, and what the log has of it.
type promise struct {
	partition messages.PartitionID
	plog      messages.PLogOffset
	workspace messages.WSID
	wlog      messages.WLogOffset
	at        messages.Timestamp
	numbers   []messages.SequenceNumber
	body      []byte
	// records are the ids of the records, all of which hold the body.
	records []messages.RecordID
}

// promiseOf is what an event of the log says. A record that does not hold the body makes
// it one that nobody was given.
func promiseOf(e *messages.Event) promise {
	p := promise{
		partition: e.Partition, plog: e.PLogOffset, workspace: e.Workspace, wlog: e.WLogOffset,
		at: e.RegisteredAt, numbers: e.Numbers, body: e.Body,
	}
	for _, r := range e.Records {
		if string(r.Data) != string(e.Body) {
			r.ID = messages.RecordID{}
		}
		p.records = append(p.records, r.ID)
	}
	return p
}

var seed = maphash.MakeSeed()

// digest stands for a promise.
func (p *promise) digest() uint64 {
	buffer := make([]byte, 0, 512)
	for _, n := range []uint64{
		uint64(p.partition), uint64(p.plog), uint64(p.workspace), uint64(p.wlog), uint64(p.at), uint64(len(p.numbers)), uint64(len(p.records)),
	} {
		buffer = binary.BigEndian.AppendUint64(buffer, n)
	}
	for _, n := range p.numbers {
		buffer = appendNumber(buffer, n.Seq, n.Number)
	}
	for _, id := range p.records {
		buffer = appendNumber(buffer, id.Seq, id.Number)
	}
	return maphash.Bytes(seed, append(buffer, p.body...))
}

func appendNumber(buffer []byte, seq messages.SeqID, n messages.Number) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16(buffer, uint16(seq)), uint64(n))
}

// bodySize is that of every body: whoever asked for the event, its number there, and filling.
const bodySize = 128

func newBody(client, event uint64) []byte {
	body := make([]byte, bodySize)
	binary.BigEndian.PutUint64(body, client)
	binary.BigEndian.PutUint64(body[8:], event)
	for i := 16; i < bodySize; i++ {
		body[i] = byte(event*31 + uint64(i)*7)
	}
	return body
}

func parseBody(body []byte) (client, event uint64, ok bool) {
	if len(body) != bodySize {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(body), binary.BigEndian.Uint64(body[8:]), true
}
