package sequencer

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

var errDown = errors.New("storage is down")

// storedNumbers are the last numbers of a workspace, the WLog offset among them, and which periods are closed.
type storedNumbers struct {
	kind    messages.WSKind
	numbers map[messages.SequencePeriod]messages.Number
	closed  map[messages.SeqID]calendar.Date
	// zones are all that it was ever given.
	zones calendar.Zones
}

func newStored(kind messages.WSKind) storedNumbers {
	return storedNumbers{
		kind: kind, numbers: make(map[messages.SequencePeriod]messages.Number), closed: make(map[messages.SeqID]calendar.Date),
	}
}

// storedOf are last numbers of sequences that never restart.
func storedOf(kind messages.WSKind, last map[messages.SeqID]messages.Number) storedNumbers {
	l := newStored(kind)
	for seq, n := range last {
		l.numbers[messages.SequencePeriod{Seq: seq}] = n
	}
	return l
}

// store is a log with SeqData beside it, and the faults that it is to show next.
type store struct {
	log   []messages.Event
	epoch messages.Epoch
	// usurped says that somebody else has taken the epoch.
	usurped bool
	// hidden says that they have also flushed what was written before.
	hidden     bool
	seqData    map[messages.WSID]storedNumbers
	checkpoint messages.PLogOffset
	// truth is what SeqData would be at the log's end.
	truth map[messages.WSID]storedNumbers

	// piece is how many events the actualizer sends at once.
	piece int
	// flushMode holds until it is changed; the others are used up.
	flushMode                        flushMode
	diverge, breakFlush              bool
	failLoads, failReplays, failFind int
	breakReplay, elsewhere           bool
	failSearches                     int
	writeFault                       writeFault
	faultyWrites                     int
	taken                            map[taken]bool
	// astray are workspaces whose events never continue the log.
	astray map[messages.WSID]bool
	// damage changes what the tail says.
	damage func(*messages.Numbering)
	// permitted says that the actualizer holds one of the permits to replay.
	permitted bool
	// flushes are all that were carried out.
	flushes []*messages.WriteProjections
	// bodies counts the events that were written in batches.
	bodies map[string]int
}

type flushMode uint8

const (
	flushWorks flushMode = iota
	// flushFails: nothing is written.
	flushFails
	// flushLies: it is written and reported as failed.
	flushLies
)

func newStore() store {
	return store{
		seqData: make(map[messages.WSID]storedNumbers), truth: make(map[messages.WSID]storedNumbers),
		checkpoint: 1, piece: 100,
		taken: make(map[taken]bool), astray: make(map[messages.WSID]bool), bodies: make(map[string]int),
	}
}

const (
	flusherLeaf = iota
	actualizerLeaf
	readerLeaf
	appenderLeaf
	leafCount
)

// leaf does its jobs one after the other; the answers are delivered later, in
// order.
type leaf struct {
	jobs    []any
	answers []messages.PartitionMessage
}

// work lets a leaf do its oldest job.
func (w *world) work(i int) bool {
	l := &w.leaves[i]
	if len(l.jobs) == 0 {
		return false
	}
	job := l.jobs[0]
	l.jobs = l.jobs[1:]
	if answer := w.do(job); answer != nil {
		l.answers = append(l.answers, answer)
	}
	return true
}

// deliver hands a leaf's oldest answer to the core.
func (w *world) deliver(i int) bool {
	l := &w.leaves[i]
	if len(l.answers) == 0 {
		return false
	}
	answer := l.answers[0]
	l.answers = l.answers[1:]
	w.tell(answer)
	return true
}

func (w *world) do(job any) messages.PartitionMessage {
	switch m := job.(type) {
	case *messages.WriteProjections:
		return w.writeProjections(m)
	case *messages.Replay:
		return w.takeEpoch(m)
	case *messages.Credit:
		return w.readTail(m)
	case *messages.EndReplay:
		w.permitted = false
		return nil
	case *messages.LoadNumbers:
		return w.load(m)
	case *messages.FindEvent:
		return w.find(m)
	case *messages.LoadEvents:
		return w.loadEvents(m)
	case *writing:
		return w.writeEvents(m)
	}
	w.t.Fatalf("unknown job %T", job)
	return nil
}

func (w *world) writeProjections(m *messages.WriteProjections) *messages.Written {
	answer := &messages.Written{Generation: m.Generation, Checkpoint: m.Checkpoint}
	switch {
	case m.Epoch != w.epoch:
		w.hit("flush of an older epoch")
		answer.Outcome, answer.Err = messages.Broken, messages.ErrFenced
	case w.diverge:
		w.diverge = false
		answer.Outcome, answer.Err = messages.Diverged, errors.New("diverged")
	case w.breakFlush:
		w.breakFlush = false
		answer.Outcome, answer.Err, answer.PLogOffset = messages.Broken, errors.New("damaged"), m.Expected
	case w.flushMode == flushFails:
		answer.Outcome, answer.Err = messages.Retry, errDown
	default:
		w.apply(m)
		if w.flushMode == flushLies {
			answer.Outcome, answer.Err = messages.Retry, errDown
		}
	}
	return answer
}

// apply writes a flush, which must say exactly what the log says.
func (w *world) apply(m *messages.WriteProjections) {
	if m.Checkpoint == w.checkpoint {
		w.hit("flush repeated")
		return
	}
	end := messages.PLogOffset(len(w.log)) + 1
	if m.Expected != w.checkpoint || m.Checkpoint < m.Expected || m.Checkpoint > end {
		w.t.Fatalf("flush from %d to %d: the checkpoint is %d and the log ends before %d", m.Expected, m.Checkpoint, w.checkpoint, end)
	}
	after, want := maps.Clone(w.seqData), lastsOf(w.log[:m.Checkpoint-1], w.kinds())
	for _, n := range m.Numbers {
		w.checkListed(n)
		changed := after[n.Workspace].with(n, w.kinds())
		changed.zones = want[n.Workspace].zones // which nobody says but the log
		after[n.Workspace] = changed
	}
	if !reflect.DeepEqual(after, want) {
		w.t.Fatalf("flush from %d to %d: %+v\nSeqData would be %v\nthe log says      %v", m.Expected, m.Checkpoint, m.Numbers, after, want)
	}
	w.seqData, w.checkpoint = after, m.Checkpoint
	w.flushes = append(w.flushes, m)
}

// checkListed: the numbers of a workspace are listed by sequence and period, each once.
func (w *world) checkListed(n messages.WorkspaceNumbers) {
	for i := range n.Numbers {
		if i > 0 && n.Numbers[i-1].SequencePeriod().Compare(n.Numbers[i].SequencePeriod()) >= 0 {
			w.t.Fatalf("flush of workspace %d: %v is listed before %v", n.Workspace, n.Numbers[i-1], n.Numbers[i])
		}
	}
}

// with merges what a flush says by maximum: a flush after a replay also lists
// explicit ids below the stored number, which change nothing.
func (l storedNumbers) with(n messages.WorkspaceNumbers, kinds map[messages.WSKind]map[messages.SeqID]messages.Sequence) storedNumbers {
	after := newStored(l.kind)
	maps.Copy(after.numbers, l.numbers)
	maps.Copy(after.closed, l.closed)
	for _, s := range n.Numbers {
		after.numbers[s.SequencePeriod()] = max(after.numbers[s.SequencePeriod()], s.Number)
	}
	if n.Kind != 0 {
		after.kind = n.Kind
	}
	after.close(kinds[after.kind])
	return after
}

// kinds returns the sequences by kind and id. A game keeps them: it does not change its descriptor.
func (w *world) kinds() map[messages.WSKind]map[messages.SeqID]messages.Sequence {
	if w.kept != nil {
		return w.kept
	}
	kinds := make(map[messages.WSKind]map[messages.SeqID]messages.Sequence)
	for _, k := range w.config.Descriptor.Kinds {
		kinds[k.ID] = make(map[messages.SeqID]messages.Sequence)
		for _, s := range k.All() {
			kinds[k.ID][s.ID] = s
		}
	}
	return kinds
}

// lastsOf is the definition of SeqData: the maxima of the events, of what is not
// below the initial value.
func lastsOf(log []messages.Event, kinds map[messages.WSKind]map[messages.SeqID]messages.Sequence) map[messages.WSID]storedNumbers {
	all := make(map[messages.WSID]storedNumbers)
	for i := range log {
		raiseTo(all, &log[i], kinds)
	}
	return all
}

func raiseTo(all map[messages.WSID]storedNumbers, e *messages.Event, kinds map[messages.WSKind]map[messages.SeqID]messages.Sequence) {
	l, ok := all[e.Workspace]
	if !ok {
		l = newStored(e.WorkspaceKind)
		all[e.Workspace] = l
	}
	wlog := messages.SequencePeriod{Seq: messages.SeqWLogOffset}
	l.numbers[wlog] = max(l.numbers[wlog], messages.Number(e.WLogOffset))
	for _, n := range e.Numbering().Numbers {
		if n.Number >= kinds[e.WorkspaceKind][n.Seq].Initial {
			l.numbers[n.SequencePeriod()] = max(l.numbers[n.SequencePeriod()], n.Number)
		}
	}
	l.close(kinds[e.WorkspaceKind])
	if e.Zone != "" {
		l.zones = append(slices.Clone(l.zones), messages.ZoneChange(e.Zone, e.RegisteredAt))
		all[e.Workspace] = l
	}
}

func (w *world) takeEpoch(m *messages.Replay) messages.PartitionMessage {
	if failed := w.replayFault(m.Generation); failed != nil {
		return failed
	}
	w.epoch++
	w.permitted, w.usurped = true, false
	r := messages.Register{Epoch: w.epoch, Last: messages.PLogOffset(len(w.log)), Checkpoint: w.checkpoint}
	if r.Last > 0 {
		r.LastRegisteredAt = w.log[r.Last-1].RegisteredAt
	}
	return &messages.Taken{Generation: m.Generation, Register: r}
}

func (w *world) replayFault(generation uint64) messages.PartitionMessage {
	if w.breakReplay {
		w.breakReplay, w.permitted = false, false
		w.hit("replay broken")
		return &messages.ReplayFailed{Generation: generation, Outcome: messages.Broken, Err: errors.New("damaged"), PLogOffset: w.checkpoint}
	}
	if w.failReplays > 0 {
		w.failReplays--
		w.permitted = false
		w.hit("replay failed")
		return &messages.ReplayFailed{Generation: generation, Outcome: messages.Retry, Err: errDown, Elsewhere: w.elsewhere}
	}
	return nil
}

func (w *world) readTail(m *messages.Credit) messages.PartitionMessage {
	if failed := w.replayFault(m.Generation); failed != nil {
		return failed
	}
	answer := &messages.Replayed{Generation: m.Generation}
	for i := m.From; i <= messages.PLogOffset(len(w.log)) && len(answer.Events) < w.piece; i++ {
		n := w.log[i-1].Numbering()
		if w.damage != nil {
			w.damage(&n)
		}
		answer.Events = append(answer.Events, n)
	}
	return answer
}

func (w *world) load(m *messages.LoadNumbers) *messages.Loaded {
	answer := &messages.Loaded{Generation: m.Generation, Load: m.Load, Numbers: messages.WorkspaceNumbers{Workspace: m.Workspace}}
	if w.failLoads > 0 {
		w.failLoads--
		answer.Err = fmt.Errorf("load: %w", errDown)
		return answer
	}
	l := w.seqData[m.Workspace]
	answer.Numbers = l.listed(m.Workspace, w.kinds()[l.kind], m.Periods)
	w.hitIf(len(m.Periods) > 0, "loaded on demand")
	w.hitIf(len(m.Periods) > 1, "several periods loaded on demand")
	return answer
}

func (w *world) find(m *messages.FindEvent) *messages.Found {
	answer := &messages.Found{Generation: m.Generation, Token: m.Token}
	if w.failFind > 0 {
		w.failFind--
		w.hit("find failed")
		answer.Err = fmt.Errorf("find: %w", errDown)
		return answer
	}
	answer.Present = w.inLog(m.Token)
	return answer
}

// inLog reports whether an event has the token's offset and epoch.
func (w *world) inLog(t messages.Token) bool {
	return t.PLogOffset > 0 && t.PLogOffset <= messages.PLogOffset(len(w.log)) && w.log[t.PLogOffset-1].Epoch == t.Epoch
}

// appendEvent writes an event if the store's rules allow it.
func (w *world) appendEvent(e messages.Event) bool {
	if e.Epoch != w.epoch || e.PLogOffset != messages.PLogOffset(len(w.log))+1 {
		return false
	}
	if n := len(w.log); n > 0 && e.RegisteredAt < w.log[n-1].RegisteredAt {
		w.t.Fatalf("event %d: time falls from %v to %v", e.PLogOffset, w.log[n-1].RegisteredAt, e.RegisteredAt)
	}
	before := w.truth[e.Workspace]
	if got, want := e.WLogOffset, messages.WLogOffset(before.last(messages.SeqWLogOffset)+1); got != want {
		w.t.Fatalf("event %d of workspace %d: got WLog offset %d, want %d", e.PLogOffset, e.Workspace, got, want)
	}
	if before.kind != 0 && before.kind != e.WorkspaceKind {
		w.t.Fatalf("event %d: workspace %d has kind %d and %d", e.PLogOffset, e.Workspace, before.kind, e.WorkspaceKind)
	}
	w.checkPeriods(&e)
	w.hitPeriods(&e)
	w.hitTaken(&e)
	w.log = append(w.log, e)
	raiseTo(w.truth, &e, w.kinds())
	return true
}
