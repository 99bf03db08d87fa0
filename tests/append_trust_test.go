package tests

import (
	"errors"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// first is a workspace of the victim's partition whose append is under way while the
// others gather.
const first messages.WSID = 6

// batched are the appends that stand in one batch, but for the stranger's. The ones
// under an id come twice.
func batched() []*begun {
	twice := func(ws messages.WSID, bodies ...string) *begun {
		return &begun{Workspace: ws, ID: idOf(5, 1), Bodies: bodies}
	}
	receipt := func(body string) *begun { return &begun{Workspace: victim, Bodies: []string{body}, Drafted: true} }
	return []*begun{
		{Workspace: victim, Bodies: []string{"v1"}},
		{Workspace: neighbour, Bodies: []string{"n1"}},
		receipt("v2"),
		twice(victim, "v3", "v3+"),
		twice(neighbour, "n2", "n2+"),
		twice(victim, "v3", "v3+"),
		{Workspace: stranger, Bodies: []string{"s1"}},
		twice(neighbour, "n2", "n2+"),
		receipt("v4"),
		{Workspace: neighbour, Bodies: []string{"n3"}},
	}
}

// planted is a site with a foreign key, and what has become of appends since.
type planted struct {
	*site
	d       *deployment
	appends []*begun
	answers []answer
	// next are the invoice numbers to come, end is the end of partition 0's log.
	next map[messages.WSID]messages.Number
	end  messages.PLogOffset
}

// appendBatch puts a foreign value at a place and lets the appends meet it in one
// batch.
func (s *site) appendBatch(t testing.TB, at spot) *planted {
	t.Helper()
	at.plant(t, s)
	s.faulty = true
	s.countAppends()
	p := &planted{
		site: s, d: s.run(t), appends: batched(),
		next: map[messages.WSID]messages.Number{victim: 2, neighbour: 2, stranger: 2}, end: 3,
	}
	c := s.holdFirst(t, p.d, first)
	for _, b := range p.appends {
		c.join(t, p.d, b)
		c.gathered(t, s, p.d.app.PartitionOf(b.Workspace))
	}
	c.gate.Release()
	check(t, <-c.first)
	p.answers = c.all()
	for i, b := range p.appends {
		if a := p.answers[i]; a.err == nil && !a.each[0].Repeated {
			if !b.Drafted {
				p.next[b.Workspace]++
			}
			if b.Workspace != stranger {
				p.end += messages.PLogOffset(len(b.Bodies))
			}
		}
	}
	if end := p.d.ends(t)[0]; end != p.end {
		t.Errorf("the log ends at %d, want %d", end, p.end)
	}
	return p
}

// concerns checks that exactly some of the appends got a conflict.
func (p *planted) concerns(t testing.TB, place storage.Place, some func(*begun) bool) {
	t.Helper()
	for i, b := range p.appends {
		a := p.answers[i]
		if !some(b) {
			if a.err != nil {
				t.Errorf("%s: got error %v, which is others' concern", b.Bodies[0], a.err)
			}
			continue
		}
		if a.err == nil {
			t.Errorf("%s: it was written as %+v over a key that is taken", b.Bodies[0], a.each)
			continue
		}
		if conflict := wantConflict(t, a.err, place); conflict.Workspace != victim {
			t.Errorf("%s: got %v, want workspace %d", b.Bodies[0], a.err, victim)
		}
	}
}

// endTrust ends the test with a flush: what was overwritten is gone, else it is kept until the repair.
func (p *planted) endTrust(t testing.TB, at spot, kept bool) {
	t.Helper()
	p.faulty = false
	if !kept {
		p.d.stop(t)
		p.keep(t, at, false)
		return
	}
	p.endKept(t, at)
	repair(t, p.site, p.next)
}

// endKept flushes, unless the partition has failed. What is foreign is still there.
func (p *planted) endKept(t testing.TB, at spot) {
	t.Helper()
	p.faulty = false
	_ = p.d.parts.Close(limit(t))
	check(t, p.d.store.Close(limit(t)))
	p.keep(t, at, true)
}

// nobody is concerned.
func nobody(*begun) bool { return false }

// TestTrustAppendRecord: at level 0 a taken record concerns those of the batch who
// create a record of that sequence in that workspace, at the others nobody.
func TestTrustAppendRecord(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, level messages.TrustLevel) {
		taken := recordSpot{victim, messages.RecordID{Seq: seqInvoice, Number: 2}}
		p := s.appendBatch(t, taken)
		if level != messages.TrustNone {
			p.concerns(t, storage.PlaceRecord, nobody)
		} else {
			p.concerns(t, storage.PlaceRecord, func(b *begun) bool { return b.Workspace == victim && !b.Drafted })
		}
		p.endTrust(t, taken, level == messages.TrustNone)
	})
}

// TestTrustAppendWLog: at levels 0 and 1 a taken entry of the workspace's log
// concerns all of that workspace. At level 2 it is met at the flush.
func TestTrustAppendWLog(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, level messages.TrustLevel) {
		taken := wlogSpot{victim, 2}
		p := s.appendBatch(t, taken)
		if level == messages.TrustAll {
			p.concerns(t, storage.PlaceWLog, nobody)
			p.endKept(t, taken) // the log has no event at the foreign one's offset: there is no repair
			return
		}
		p.concerns(t, storage.PlaceWLog, func(b *begun) bool { return b.Workspace == victim })
		p.endTrust(t, taken, true)
	})
}

// TestTrustAppendPLog: at levels 0 and 1 a taken entry of the partition's log
// concerns the whole partition, from that spot on, and no other. At level 2 it is met at the flush.
func TestTrustAppendPLog(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *site, level messages.TrustLevel) {
		taken := plogKey(0, 5)
		p := s.appendBatch(t, taken)
		if level == messages.TrustAll {
			p.concerns(t, storage.PlacePLog, nobody)
			p.endTrust(t, taken, true)
			return
		}
		for i, b := range p.appends {
			switch a := p.answers[i]; {
			case b.Workspace == stranger:
				check(t, a.err)
			case a.err == nil && a.each[0].PLogOffset != 4:
				t.Errorf("%s: got %+v, want that nobody writes from offset 5 on", b.Bodies[0], a.each)
			case a.err != nil && !errors.Is(a.err, storage.ErrConflict) && !errors.Is(a.err, messages.ErrPartitionFailed):
				t.Errorf("%s: got error %v", b.Bodies[0], a.err)
			}
		}
		s.awaitState(t, p.d, 0, messages.StateFailed)
		p.endTrust(t, taken, true)
	})
}
