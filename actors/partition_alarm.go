package actors

import (
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/internal/sequencer"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// alarm notices what a partition does not get done. While a leaf has work it looks from time to time: an event costs no
// more for it, and an idle partition has no timer.
type alarm struct {
	armed bool
	// leaves notice those that do not answer, flush a partition that is busy since too much is unflushed.
	leaves [leafKinds]stall
	flush  stall
}

// every is how much time is between two looks.
func (p *partition) every() time.Duration { return p.handle.config.AlarmAfter / looksUntilAlarm }

// ask notes that a leaf gets work.
func (p *partition) ask(ctx actor.Context, k leafKind) {
	p.asked[k]++
	if !p.alarm.armed && p.every() > 0 {
		p.armAlarm(ctx)
	}
}

// works reports whether a leaf has work.
func (p *partition) works() bool {
	for _, asked := range p.asked {
		if asked > 0 {
			return true
		}
	}
	return false
}

func (p *partition) armAlarm(ctx actor.Context) {
	p.alarm.armed = true
	p.arm(ctx, sequencer.Alarm{Timer: messages.TimerAlarm, After: p.every()})
}

// look finds out what has not got on since the last look, and goes on looking while there is something to do.
func (p *partition) look(ctx actor.Context) {
	p.alarm.armed = false
	for k := range p.alarm.leaves {
		p.alarm.leaves[k].look(p.asked[k] > 0, p.answered[k])
	}
	times, _, _ := p.core.Busy()
	p.alarm.flush.look(times > 0, times)
	p.tell()
	if p.works() || times > 0 || p.full() != nil {
		p.armAlarm(ctx)
	}
}

// full returns why the store has no room for events, nil if it has, or cannot tell. A partition that was not refused
// for it has not noticed.
func (p *partition) full() error {
	if !p.refused {
		return nil
	}
	return p.handle.full()
}

// full asks the store.
func (p *Partition) full() error {
	if roomy, ok := p.config.Store.(storage.Roomy); ok {
		return roomy.Full()
	}
	return nil
}

// noteRoom notes whether the store has had room for what the partition has written last. That it has not is told at
// once.
func (p *partition) noteRoom(ctx actor.Context, err error) {
	refused := errors.Is(err, storage.ErrFull)
	if !refused && !p.refused {
		return
	}
	p.refused = refused
	p.tell()
	if refused && !p.alarm.armed && p.every() > 0 {
		p.armAlarm(ctx)
	}
}

// calm ends the looks: nothing is under way.
func (p *partition) calm() {
	if p.alarm.armed && p.full() == nil {
		p.disarm(messages.TimerAlarm)
		p.alarm = alarm{}
		p.tell()
	}
}

// tell publishes the status if its words have changed.
func (p *partition) tell() {
	now, before := p.status(false), p.handle.status.Load()
	if now.State != before.State || now.Details != before.Details {
		p.handle.setStatus(now)
	}
}

// alarms says in words what does not get on, or will not.
func (p *partition) alarms(s *messages.PartitionStatus) (all []string) {
	if s.State == messages.StateTerminated || s.State == messages.StateFailed {
		return nil
	}
	if s.Full != nil {
		all = append(all, fmt.Sprintf("refusing appends: %v", s.Full))
	}
	times, events, keys := p.core.Busy()
	if d := p.alarm.flush.lasts(p.every(), times > 0, times); d > 0 {
		all = append(all, busyText(d, events, keys, p.handle.settings.Load()))
	}
	for k := range p.alarm.leaves {
		if d := p.alarm.leaves[k].lasts(p.every(), p.asked[k] > 0, p.answered[k]); d > 0 {
			all = append(all, fmt.Sprintf("the %s has not answered for %s", leafNames[k], seconds(d)))
		}
	}
	if used := nearlyUsedText(s.NearlyUsed); used != "" {
		all = append(all, used)
	}
	return all
}
