package actors

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/messages"
)

// Standing is where everybody sees what an actor does. Whoever looks does not keep the actor from changing it, however
// many they are. It is safe for concurrent use.
type Standing struct {
	now atomic.Pointer[messages.ActorStatus]
	// mu is of those who change it by what it is.
	mu sync.Mutex
	// changed is called after a change; it may be nil.
	changed func()
	// tally counts the states that it comes to; it may be nil.
	tally *Tally
}

// Status returns the actor's status as of its last change. It is never changed: another one is another change.
func (s *Standing) Status() *messages.ActorStatus { return s.now.Load() }

func (s *Standing) begin(key Key, restart string, changed func(), tally *Tally) {
	s.changed, s.tally = changed, tally
	s.now.Store(&messages.ActorStatus{Group: key.Group, ID: key.ID, Restart: restart})
}

// change lets f change the status. An actor that has ended does not change any more.
func (s *Standing) change(f func(*messages.ActorStatus)) {
	if s.swap(f) && s.changed != nil {
		s.changed()
	}
}

func (s *Standing) swap(f func(*messages.ActorStatus)) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.now.Load()
	after := *before
	f(&after)
	if before.State == messages.StateTerminated ||
		before.State == after.State && before.Details == after.Details && before.Restarts == after.Restarts {
		return false
	}
	s.now.Store(&after)
	if before.State != after.State {
		s.tally.move(after.Group, after.State)
	}
	return true
}

func (s *Standing) become(state messages.ActorState, details string) {
	s.change(func(s *messages.ActorStatus) { s.State, s.Details = state, details })
}

// interrupted publishes that the actor has failed.
func (s *Standing) interrupted(f Failure) {
	s.change(func(s *messages.ActorStatus) {
		s.State, s.Details, s.Err = f.state(), f.String(), fmt.Errorf("%w: %v", messages.ErrInterrupted, f.Reason)
	})
}

// Failure is a panic of an actor, and what becomes of the actor.
type Failure struct {
	// Reason is what it panicked with.
	Reason any
	// Failures counts those in a row, from 1.
	Failures int
	// Delay is how long it waits to be restarted.
	Delay time.Duration
	// GivenUp says that it is not restarted, and ends.
	GivenUp bool
}

func (f Failure) state() messages.ActorState {
	if f.GivenUp {
		return messages.StateFailed
	}
	return messages.StateInitializing
}

// String says it in words.
func (f Failure) String() string {
	what := fmt.Sprintf("panicked for the %s time in a row: %v", ordinal(f.Failures), f.Reason)
	if f.GivenUp {
		return what + "; it is not restarted"
	}
	return fmt.Sprintf("%s; it is restarted after %v", what, f.Delay)
}

func detailsField(details string) zap.Field {
	if details == "" {
		return zap.Skip()
	}
	return zap.String("details", details)
}

// joinDetails joins details of a status that are not empty.
func joinDetails(first string, more ...string) string {
	var all []string
	for _, s := range append([]string{first}, more...) {
		if s != "" {
			all = append(all, s)
		}
	}
	return strings.Join(all, "; ")
}

// detailsOf says in words what the state of a partition is about.
func detailsOf(s *messages.PartitionStatus) string {
	switch s.State {
	case messages.StateInitializing:
		return joinDetails(textOf(s.Err), replayText(s))
	case messages.StateNormal, messages.StateAlarming, messages.StateTerminating:
		if s.FlushFailures > 0 {
			return fmt.Sprintf("cannot flush: %v, %s try", s.Err, ordinal(s.FlushFailures))
		}
		return textOf(s.Err)
	case messages.StateTerminated:
		return joinDetails(endText(s), textOf(s.Err))
	case messages.StateFailed:
	}
	return textOf(s.Err)
}

func replayText(s *messages.PartitionStatus) string {
	if s.Tail == 0 {
		return ""
	}
	return fmt.Sprintf("replaying: %s of %s", count(s.Replayed), count(s.Tail))
}

func endText(s *messages.PartitionStatus) string {
	switch {
	case s.Abandoned > 0:
		return fmt.Sprintf("leaves that hang in storage and were left behind: %d", s.Abandoned)
	case !s.Clean:
		return "not everything is flushed"
	}
	return ""
}

// busyText says what is unflushed.
func busyText(d time.Duration, events, keys int, s *messages.Settings) string {
	switch {
	case events >= s.BusyEvents:
		return fmt.Sprintf("busy for %s: %s events unflushed", seconds(d), count(events))
	case keys >= s.BusyLimit:
		return fmt.Sprintf("busy for %s: %s keys unflushed", seconds(d), count(keys))
	}
	return fmt.Sprintf("busy for %s: the store takes no event before a flush", seconds(d))
}

// nearlyUsedText names the first of the sequences that will end.
func nearlyUsedText(all []messages.NearlyUsed) string {
	if len(all) == 0 {
		return ""
	}
	n := &all[0]
	period, more := "", ""
	if n.Period != 0 {
		period = fmt.Sprintf(", period %v", n.Period)
	}
	if len(all) > 1 {
		more = fmt.Sprintf(", and %d more", len(all)-1)
	}
	return fmt.Sprintf("sequence %s of workspace %d%s is at %s of %s%s", n.Name, n.Workspace, period, count(n.Last), count(n.Largest), more)
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// count writes a number as people read it: 65,536.
func count[T ~int | ~uint64](n T) string {
	digits := strconv.FormatUint(uint64(n), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// ordinal writes 1st, 2nd, 3rd, 4th.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 && n%10 >= 1 && n%10 <= 3 {
		suffix = [...]string{"st", "nd", "rd"}[n%10-1]
	}
	return strconv.Itoa(n) + suffix
}

// seconds writes a duration as people read it: 4 s, 2.5 s.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Round(time.Millisecond).Seconds(), 'f', -1, 64) + " s"
}
