package bolt

import (
	"bytes"
	"encoding/binary"
	"math"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
)

// ends remembers of some workspaces where their keys end, so that the next ones need
// not be looked for in state.db: in it and in the tail together, no entry of a log and
// no record of a sequence lies above its end. This stays true without looking again,
// since nobody but this process writes the file, and it writes nothing there but
// what was appended. The partition's lock guards it.
type ends struct {
	// last is the largest offset of a workspace's log (SeqWLogOffset), the largest
	// number of a sequence's records, and the workspace's kind (kindSeq).
	last map[numberKey]messages.Number
	// plogFree says that state.db has no entry behind the end of the partition's log.
	plogFree bool
}

// endsInAll is how many ends all partitions together remember.
const endsInAll = 1 << 17

// covers reports whether an event's keys are free, and continue its workspace's log,
// as far as is remembered. known says that its kind is that of the workspace, before
// is how many events of the workspace are before it in its batch.
func (d *ends) covers(n *newEvent, known bool, before int, trust messages.TrustLevel) bool {
	last, ok := d.last[numberKey{n.ws, messages.SeqWLogOffset}]
	switch {
	case !ok || messages.Number(n.wlog) != last+messages.Number(before)+1:
		return false
	case !known && d.last[numberKey{n.ws, kindSeq}] != messages.Number(n.wsKind):
		return false
	case trust > messages.TrustNone:
		return true
	}
	var seq messages.SeqID
	for _, r := range n.records {
		if !r.isNew {
			continue
		}
		if r.seq != seq {
			if last, ok = d.last[numberKey{n.ws, r.seq}]; !ok {
				return false
			}
			seq = r.seq
		}
		if r.number <= last {
			return false
		}
	}
	return true
}

// raise takes an event in that was appended.
func (d *ends) raise(n *newEvent) {
	if len(d.last) == 0 {
		return
	}
	d.raiseTo(numberKey{n.ws, messages.SeqWLogOffset}, messages.Number(n.wlog))
	for _, r := range n.records {
		d.raiseTo(numberKey{n.ws, r.seq}, r.number)
	}
}

func (d *ends) raiseTo(k numberKey, n messages.Number) {
	if last, ok := d.last[k]; ok && n > last {
		d.last[k] = n
	}
}

// learned is what a look into state.db has shown.
type learned struct {
	last     map[numberKey]messages.Number
	plogFree bool
}

// learnAll looks where the keys end that a request continues.
func learnAll(tx *bbolt.Tx, r *writeRequest, trust messages.TrustLevel) learned {
	_, taken := firstPLogKey(tx.Bucket(bucketPLog).Cursor(), r.partition.id, r.events[0].offset)
	l := learned{last: make(map[numberKey]messages.Number), plogFree: !taken}
	for i := range r.events {
		l.learn(tx, &r.events[i], trust)
	}
	return l
}

// learn looks where the keys of an event's workspace end. Its kind is what the
// event says, which was compared with what is stored.
func (l learned) learn(tx *bbolt.Tx, n *newEvent, trust messages.TrustLevel) {
	k := numberKey{n.ws, messages.SeqWLogOffset}
	if _, ok := l.last[k]; !ok {
		l.last[k] = endOf(tx.Bucket(bucketWLog).Cursor(), binary.BigEndian.AppendUint64(nil, uint64(n.ws)))
		l.last[numberKey{n.ws, kindSeq}] = messages.Number(n.wsKind)
	}
	if trust > messages.TrustNone {
		return
	}
	for _, r := range n.records {
		k := numberKey{n.ws, r.seq}
		if _, ok := l.last[k]; !ok {
			l.last[k] = endOf(tx.Bucket(bucketRecords).Cursor(), appendNumberKey(nil, n.ws, r.seq))
		}
	}
}

// endOf returns what the last key ends with that begins with a prefix, 0 if
// there is none.
func endOf(c *bbolt.Cursor, prefix []byte) messages.Number {
	var buf [recordKeyLen]byte
	end := binary.BigEndian.AppendUint64(append(buf[:0], prefix...), math.MaxUint64)
	k, _ := c.Seek(end)
	switch {
	case k == nil:
		k, _ = c.Last()
	case !bytes.Equal(k, end):
		k, _ = c.Prev()
	}
	if len(k) != len(end) || !bytes.HasPrefix(k, prefix) {
		return 0
	}
	return messages.Number(be64(k[len(prefix):]))
}

// remember takes over what was learned when the checkpoint was the one given, with
// what the tail has above it. The caller holds the partition's lock.
func (p *partition) remember(l learned, checkpoint messages.PLogOffset, limit int) {
	if p.checkpoint != checkpoint {
		return
	}
	p.ends.plogFree = p.ends.plogFree || l.plogFree
	if len(p.ends.last)+len(l.last) > limit {
		p.ends.last = nil // what is in use comes back
	}
	if p.ends.last == nil {
		p.ends.last = make(map[numberKey]messages.Number, len(l.last))
	}
	for k, n := range l.last {
		if _, ok := p.ends.last[k]; ok || k.seq == kindSeq {
			continue
		}
		if n, ok := p.tail.lastNumber(k, n); ok {
			p.ends.last[k] = n
		}
	}
	for k, n := range l.last {
		if k.seq == kindSeq {
			p.ends.last[k] = n
		}
	}
}

// tailWalk is how many events of a workspace are looked at for the end of its
// records. One with more in the tail goes without.
const tailWalk = 64

// lastNumber returns the largest of a number and of what the tail has under a key, or
// false if the workspace has too much in the tail.
func (t *tail) lastNumber(k numberKey, n messages.Number) (messages.Number, bool) {
	o, e := t.lastOf(k.ws)
	if e != nil && k.seq == messages.SeqWLogOffset {
		return max(n, messages.Number(e.wlog)), true
	}
	for walked := 0; e != nil; o, e = t.previous(o, e) {
		if walked++; walked > tailWalk {
			return 0, false
		}
		for i, end := e.records, t.recordsEnd(o); i < end; i++ {
			if r := t.records.at(i); r.seq == k.seq {
				n = max(n, r.number)
			}
		}
	}
	return n, true
}
