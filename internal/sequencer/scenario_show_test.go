package sequencer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/partita-go/partita/messages"
)

// show writes down what a message made the core do, in the order in which the shell
// does it. Requests are not shown: the command before says what was asked.
func (s *scenario) show(m messages.PartitionMessage, fx *Effects) {
	s.showAnswer(m)
	if fx.Unwatch != nil {
		s.say("unwatch %s", s.nameOf(fx.Unwatch))
	}
	if fx.Watch != nil {
		s.say("watch %s", s.nameOf(fx.Watch))
	}
	for _, m := range fx.Actualizer {
		if !s.brief {
			s.showActualizer(m)
		}
	}
	for _, m := range fx.Reader {
		s.showReader(m)
	}
	if f := fx.Flusher; f != nil {
		s.sayList(fmt.Sprintf("flusher: checkpoint %d -> %d", f.Expected, f.Checkpoint), s.workspaces(f.Numbers))
	}
	if fx.Appender != nil {
		s.sayList("appender: write", s.events(fx.Appender.Events))
	}
	for _, a := range fx.Arm {
		if a.Timer != messages.TimerCatchUp || !s.brief {
			s.say("timer: %s in %v", timerNames[a.Timer], a.After.Round(time.Millisecond))
		}
	}
	if fx.Status {
		s.summary()
	}
	for _, r := range fx.Replies {
		s.showReply(r)
	}
	if fx.Stopped {
		s.say("the actor ends")
	}
}

// timerNames are the timers' names.
var timerNames = [messages.Timers]string{"flush", "flush-retry", "transaction", "actualize-retry", "catch-up", "stop", "clock", "period"}

func (s *scenario) nameOf(r Requester) string {
	if name, ok := s.names[r.(*call)]; ok {
		return name
	}
	return s.sending
}

func (s *scenario) showActualizer(m messages.ActualizerMessage) {
	switch m := m.(type) {
	case *messages.Replay:
		s.say("actualizer: take a new epoch")
	case *messages.Credit:
		s.say("actualizer: read from event %d", m.From)
	case *messages.EndReplay:
		s.say("actualizer: let others replay")
	}
}

func (s *scenario) showReader(m messages.ReaderMessage) {
	switch m := m.(type) {
	case *messages.LoadNumbers:
		s.say("reader: load workspace %d%s", m.Workspace, s.periods(", with ", m.Periods))
	case *messages.FindEvent:
		s.say("reader: is event %d of epoch %d in the log?", m.Token.PLogOffset, m.Token.Epoch)
	case *messages.LoadEvents:
		s.say("reader: search workspace %d for id %d%s", m.Workspace, m.DedupID[0], unless0(" at offset %d", m.First))
	}
}

// showAnswer writes down an answer of a leaf, or what else nobody waits for.
func (s *scenario) showAnswer(m messages.PartitionMessage) {
	switch m := m.(type) {
	case *messages.Loaded:
		s.say("< loaded: %s%s", s.workspace(m.Numbers), unlessNil(", ", m.Err))
	case *messages.Written:
		s.say("< flushed to checkpoint %d: %s%s", m.Checkpoint, [...]string{"done", "try again", "diverged", "broken"}[m.Outcome], unlessNil(", ", m.Err))
	case *messages.EventsWritten:
		s.showWritten(m)
	case *messages.Taken, *messages.Replayed:
		if !s.brief {
			s.showTail(m)
		}
	case *messages.ReplayFailed:
		s.say("< replay failed%s: %v", unless0(" at event %d", m.PLogOffset), m.Err)
	case *messages.Found:
		s.say("< event %d of epoch %d is there: %v%s", m.Token.PLogOffset, m.Token.Epoch, m.Present, unlessNil(", ", m.Err))
	case *messages.EventsLoaded:
		s.say("< found %d events%s", len(m.Events), unlessNil(", ", m.Err))
	case *messages.OwnerStopped:
		s.say("< the owner has stopped")
	case *messages.TimerFired:
		s.say("< timer %s", timerNames[m.Timer])
	}
}

func (s *scenario) showTail(m messages.PartitionMessage) {
	switch m := m.(type) {
	case *messages.Taken:
		s.say("< epoch %d, last event %d, checkpoint %d", m.Register.Epoch, m.Register.Last, m.Register.Checkpoint)
	case *messages.Replayed:
		s.say("< events %d to %d", m.Events[0].PLogOffset, m.Events[len(m.Events)-1].PLogOffset)
	}
}

func (s *scenario) showWritten(m *messages.EventsWritten) {
	how := [...]string{"written", "refused", "failed", "the tail is full", "diverged", "fenced", "outcome unknown"}[m.Outcome]
	s.say("< %s%s", how, unlessNil(": ", m.Err))
	for _, r := range m.Refused {
		s.say("  event %d%s%s", r.PLogOffset, unless0(": its id is at offset %d", r.Duplicate), s.taking(r.Taken))
	}
}

func (s *scenario) taking(n messages.SequenceNumber) string {
	if n.Seq == 0 {
		return ""
	}
	return ": " + s.numbers([]messages.SequenceNumber{n})
}

func (s *scenario) showReply(r Reply) {
	c := r.To.(*call)
	s.say("%s: %s", s.nameOf(c), s.replyText(c, r.Message))
}

func (s *scenario) replyText(c *call, reply any) string {
	switch m := reply.(type) {
	case *messages.Started:
		return fmt.Sprintf("started event %d, offset %d%s", m.Token.PLogOffset, m.WLogOffset, s.at(m.RegisteredAt))
	case *messages.Given:
		next := c.message.(*messages.Next)
		return "given " + s.numbers(messages.AppendNumbers(nil, messages.Wanted{Seq: next.Seq, Count: next.Count}, messages.SequenceNumber{Seq: next.Seq, Period: m.Period, Number: m.Number}))
	case *messages.Appended:
		text := fmt.Sprintf("appended event %d, offset %d%s", m.PLogOffset, m.WLogOffset, s.at(m.RegisteredAt))
		if len(m.Numbers) > 0 {
			text += ": " + s.numbers(m.Numbers)
		}
		if m.Repeated {
			text += " (repeated)"
		}
		return text
	case *messages.Stopped:
		return map[bool]string{true: "stopped clean", false: "stopped, but not clean"}[m.Clean]
	case *messages.Refused:
		return fmt.Sprintf("refused, %v", m.Err)
	}
	return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", reply), "*messages."))
}

// at is a time since the scenario began, if any has passed.
func (s *scenario) at(t messages.Timestamp) string {
	return unless0(" at %v", time.Duration(t-s.began)*time.Microsecond)
}

// numbers are numbers by the names of their sequences.
func (s *scenario) numbers(all []messages.SequenceNumber) string {
	names, texts := s.sequenceNames(), make([]string, 0, len(all))
	for i, n := range all {
		if i > 0 && n.SequencePeriod() == all[i-1].SequencePeriod() {
			texts[len(texts)-1] += fmt.Sprintf(" %d", n.Number)
		} else {
			texts = append(texts, fmt.Sprintf("%s%s %d", names[n.Seq], unless0(" of %v:", n.Period), n.Number))
		}
	}
	return strings.Join(texts, ", ")
}

// periods are periods of sequences, behind a word if there are any.
func (s *scenario) periods(before string, all []messages.SequencePeriod) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = fmt.Sprintf("%s of %v", s.sequenceNames()[p.Seq], p.Period)
	}
	if len(all) == 0 {
		return ""
	}
	return before + strings.Join(texts, ", ")
}

// workspace is what a load or a flush says of a workspace. Its kind is there if it is
// news, or is known.
func (s *scenario) workspace(n messages.WorkspaceNumbers) string {
	text := fmt.Sprintf("workspace %d%s:", n.Workspace, unless0(" (%s)", s.kindName(n.Kind)))
	if len(n.Numbers) == 0 {
		return text + " none"
	}
	text += " " + s.numbers(n.Numbers) + s.periods("; closed before ", n.Closed)
	for _, seq := range n.Older {
		text += fmt.Sprintf("; more of %s", s.sequenceNames()[seq])
	}
	return text
}

func (s *scenario) kindName(id messages.WSKind) string {
	k, _ := s.config.Descriptor.Kind(id)
	return k.Name
}

// workspaces are the numbers of several.
func (s *scenario) workspaces(all []messages.WorkspaceNumbers) []string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = s.workspace(n)
	}
	return texts
}

func (s *scenario) events(all []messages.Event) []string {
	texts := make([]string, len(all))
	for i := range all {
		e := &all[i]
		texts[i] = fmt.Sprintf("event %d: workspace %d, offset %d", e.PLogOffset, e.Workspace, e.WLogOffset)
		if len(e.Numbers) > 0 {
			texts[i] += ", " + s.numbers(e.Numbers) + unless0(", the first %d brought along", e.Brought)
		}
		if len(e.Moves) > 0 {
			texts[i] += ", moved to " + s.numbers(e.Moves)
		}
		for _, r := range e.Records {
			texts[i] += fmt.Sprintf(", %s %s/%d", map[bool]string{true: "new", false: "put"}[r.New], s.sequenceNames()[r.ID.Seq], r.ID.Number)
		}
		texts[i] += unless0(", for %v", e.Date) + unless0(", id %d", e.DedupID[0]) + unless0(", with %d more", e.Together)
	}
	return texts
}

// sayList says what a list is of, and one thing in the same line or each in its own.
func (s *scenario) sayList(of string, all []string) {
	if len(all) == 1 {
		s.say("%s, %s", of, all[0])
		return
	}
	s.say("%s", of)
	for _, text := range all {
		s.say("  %s", text)
	}
}

// summary is the state with what it is about.
func (s *scenario) summary() {
	st := s.core.Status()
	replay := ""
	if st.State == messages.StateInitializing && st.Replayed > 0 {
		replay = fmt.Sprintf(", replayed %d of %d", st.Replayed, st.Tail)
	}
	s.say("status: %v, epoch %d%s%s", st.State, st.Epoch, replay, unlessNil(": ", st.Err))
	for _, n := range st.NearlyUsed {
		s.say("  nearly used: workspace %d, %s%s %d of %d", n.Workspace, n.Name, unless0(" of %v:", n.Period), n.Last, n.Largest)
	}
}

// showState writes down what the core holds, as far as there is any.
func (s *scenario) showState() {
	c := s.core
	st := c.Status()
	takes := map[bool]string{true: "takes", false: "holds"}[c.TakesRequests()]
	s.say("%v, epoch %d, last event %d, checkpoint %d, %s requests%s", st.State, st.Epoch, st.Last, st.Checkpoint, takes, unlessNil(": ", st.Err))
	if c.txn.open {
		s.say("transaction: %s in workspace %d", s.nameOf(c.txn.owner), c.txn.workspace)
	}
	s.sayWaiting("batch", membersOf(&c.batch.attempt))
	s.sayWaiting("in doubt", membersOf(&c.doubt.attempt))
	s.sayWaiting("queue", c.queue.items[c.queue.left:])
	for _, id := range sortedIDs(c.loads) {
		s.sayWaiting(fmt.Sprintf("load of workspace %d", id), c.loads[id].queue)
	}
	for _, search := range c.searches {
		s.sayWaiting("search", search.appends)
	}
	if c.inFlight != (inFlight{}) {
		s.say("in flight: %d events, %d bytes", c.inFlight.events, c.inFlight.bytes)
	}
	for _, r := range c.retired {
		s.sayPending("retired", r.pending)
	}
	if c.flight.pending != nil {
		s.sayPending("flight", c.flight.pending)
	}
	s.sayPending("unflushed", c.unflushed)
	if c.cache.Len() > 0 {
		s.say("cached: %v", slices.Sorted(slices.Values(c.cache.Keys())))
	}
	for _, l := range c.late {
		s.say("late flush: %s of event %d", s.nameOf(l.from), l.token.PLogOffset)
	}
	timers := make([]string, len(s.timers))
	for i, t := range s.timers {
		timers[i] = fmt.Sprintf("%s in %v", timerNames[t.timer], (time.Duration(t.due-s.now) * time.Microsecond).Round(time.Millisecond))
	}
	if len(timers) > 0 {
		s.say("timers: %s", strings.Join(timers, ", "))
	}
}

func membersOf(a *attempt) (all []waiting) {
	for i := range a.members {
		all = append(all, a.members[i].waiting)
	}
	return all
}

func (s *scenario) sayWaiting(where string, all []waiting) {
	if len(all) == 0 {
		return
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = s.nameOf(all[i].from)
	}
	s.say("%s: %s", where, strings.Join(names, " "))
}

func (s *scenario) sayPending(where string, p *pending) {
	if p.keys > 0 {
		s.sayList(fmt.Sprintf("%s: %d keys", where, p.keys), s.workspaces(p.numbers()))
	}
}

func (s *scenario) showStored() {
	var all []messages.WorkspaceNumbers
	for _, ws := range slices.Sorted(maps.Keys(s.seqData)) {
		all = append(all, s.load(&messages.LoadNumbers{Workspace: ws}).Numbers)
	}
	s.sayList(fmt.Sprintf("stored: checkpoint %d", s.checkpoint), s.workspaces(all))
}

// unless0 formats a value that is not its type's zero.
func unless0[T comparable](format string, value T) string {
	var zero T
	if value == zero {
		return ""
	}
	return fmt.Sprintf(format, value)
}

func unlessNil(before string, err error) string {
	if err == nil {
		return ""
	}
	return before + err.Error()
}
