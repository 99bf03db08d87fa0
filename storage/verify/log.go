package verify

import (
	"context"
	"errors"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// position is where the pass over one partition's log stands.
type position struct {
	partition messages.PartitionID
	register  messages.Register

	last     messages.PLogOffset
	epoch    messages.Epoch
	time     messages.Timestamp
	together together
}

// log is what the pass over one partition's log has gathered.
type log struct {
	position
	// damaged says that the log could not be read to its end.
	damaged bool

	workspaces map[messages.WSID]*workspace
	tail       tail
}

// readLog reads a partition's log once, and checks all that one event and its
// predecessors can tell.
func (r *run) readLog(ctx context.Context, p messages.PartitionID) (*log, error) {
	l := &log{position: position{partition: p}, workspaces: make(map[messages.WSID]*workspace)}
	reg, err := r.store.Register(ctx, p)
	if err != nil {
		l.damaged = true
		return l, r.readFault(place{partition: p}, "register", err)
	}
	l.register = reg
	l.tail = tail{next: reg.Checkpoint}
	for e, err := range r.store.PLog(ctx, p, 1) {
		if err != nil {
			l.damaged = true
			return l, r.readFault(place{partition: p, offset: l.last + 1}, "log", err)
		}
		if err := r.checkEvent(ctx, l, &e); err != nil {
			return l, err
		}
	}
	return l, r.checkEnd(ctx, l)
}

func (r *run) checkEvent(ctx context.Context, l *log, e *messages.Event) error {
	r.report.Events++
	if r.report.Events%progressEvery == 0 {
		r.progress(l.partition)
	}
	where := place{partition: l.partition, offset: e.PLogOffset, workspace: e.Workspace}
	r.checkOrder(&l.position, e, where)
	r.checkTogether(&l.position, e, where)
	numbering := e.Numbering()
	if ws := r.workspaceOf(l, e, where); ws != nil {
		r.report.Numbers += 1 + uint64(len(e.Numbers))
		ws.add(r, e, &numbering, e.PLogOffset < l.register.Checkpoint)
	}
	if e.PLogOffset < l.register.Checkpoint {
		return nil
	}
	return r.checkTail(ctx, l, &numbering, where)
}

// checkOrder compares the event with its predecessor in the partition's log.
func (r *run) checkOrder(l *position, e *messages.Event, where place) {
	if e.PLogOffset != l.last+1 {
		r.fault(CheckPLog, where, "offset is %d, want %d", e.PLogOffset, l.last+1)
	}
	if e.Epoch < l.epoch || e.Epoch == 0 {
		r.fault(CheckEpoch, where, "epoch is %d, the predecessor has %d", e.Epoch, l.epoch)
	}
	if e.Epoch > l.register.Epoch {
		r.fault(CheckEpoch, where, "epoch is %d, the register has %d", e.Epoch, l.register.Epoch)
	}
	if e.RegisteredAt < l.time {
		r.fault(CheckTime, where, "time is %d us, the predecessor has %d us", e.RegisteredAt, l.time)
	}
	l.last, l.epoch, l.time = e.PLogOffset, e.Epoch, e.RegisteredAt
}

// checkIdentity checks whose event it is and returns its workspace's kind, nil if
// that is not known.
func (r *run) checkIdentity(l *position, e *messages.Event, where place) *kind {
	if e.Partition != l.partition {
		r.fault(CheckEvent, where, "event says partition %d", e.Partition)
	}
	if p := messages.PartitionOf(e.Workspace, r.desc.Partitions); p != l.partition {
		r.fault(CheckEvent, where, "workspace %d belongs to partition %d", e.Workspace, p)
	}
	if e.Kind == 0 {
		r.fault(CheckEvent, where, "event has no kind")
	}
	k := r.kinds[e.WorkspaceKind]
	if k == nil {
		r.fault(CheckEvent, where, "workspace %d: unknown kind %d", e.Workspace, e.WorkspaceKind)
	}
	return k
}

// workspaceOf returns an event's workspace, nil if its kind is wrong.
func (r *run) workspaceOf(l *log, e *messages.Event, where place) *workspace {
	k := r.checkIdentity(&l.position, e, where)
	if k == nil {
		return nil
	}
	ws := l.workspaces[e.Workspace]
	if ws == nil {
		ws = newWorkspace(l.partition, e.Workspace, k)
		l.workspaces[e.Workspace] = ws
	}
	if !r.sameKind(ws.kind, k, e, where) {
		return nil
	}
	return ws
}

// sameKind makes sure that a workspace keeps its kind.
func (r *run) sameKind(first, k *kind, e *messages.Event, where place) bool {
	if first != k {
		r.fault(CheckKind, where, "workspace %d is of kind %d, its first event has %d", e.Workspace, k.id, first.id)
	}
	return first == k
}

// checkEnd compares the end of the log with the register, and with what must have
// followed.
func (r *run) checkEnd(ctx context.Context, l *log) error {
	if !r.checkRegister(&l.position) || l.tail.broken {
		return nil
	}
	where := place{partition: l.partition}
	rest, err := r.store.Tail(ctx, l.partition, l.last+1, 1)
	if err != nil {
		return r.tailFault(where, err)
	}
	if len(rest) > 0 {
		r.fault(CheckTail, where, "tail goes on at %d, behind the log's end at %d", rest[0].PLogOffset, l.last)
	}
	return nil
}

// checkRegister compares the end of the log with the register. It reports whether
// the checkpoint can be right.
func (r *run) checkRegister(l *position) bool {
	r.checkTogetherEnd(l)
	where := place{partition: l.partition}
	reg := l.register
	if reg.Last != l.last || reg.LastRegisteredAt != l.time {
		r.fault(CheckRegister, where, "register ends at %d at %d us, the log at %d at %d us", reg.Last, reg.LastRegisteredAt, l.last, l.time)
	}
	if reg.Checkpoint < 1 || reg.Checkpoint > l.last+1 {
		r.fault(CheckRegister, where, "checkpoint is %d, want 1 to %d", reg.Checkpoint, l.last+1)
		return false
	}
	return true
}

// tail reads Tail in pages beside the log.
type tail struct {
	next messages.PLogOffset
	page []messages.Numbering
	// broken says that it was found wrong or unreadable, and is not looked at again.
	broken bool
}

// tailPage is how many events are read at once.
const tailPage = 1000

// checkTail compares what Tail says about one event with the event.
func (r *run) checkTail(ctx context.Context, l *log, want *messages.Numbering, where place) error {
	t := &l.tail
	if t.broken {
		return nil
	}
	if len(t.page) == 0 {
		page, err := r.store.Tail(ctx, l.partition, t.next, tailPage)
		if err != nil {
			t.broken = true
			return r.tailFault(where, err)
		}
		t.page = page
	}
	if len(t.page) == 0 || !sameNumbering(&t.page[0], want) {
		t.broken = true
		r.fault(CheckTail, where, "tail differs from the event: got %+v, want %+v", t.page[:min(1, len(t.page))], *want)
		return nil
	}
	t.page = t.page[1:]
	t.next++
	return nil
}

// tailFault takes a refusal for a fault: Tail and Register disagree about the
// checkpoint.
func (r *run) tailFault(where place, err error) error {
	if errors.Is(err, storage.ErrCheckpoint) {
		r.fault(CheckTail, where, "tail: %v", err)
		return nil
	}
	return r.readFault(where, "tail", err)
}

func sameNumbering(a, b *messages.Numbering) bool {
	return a.Epoch == b.Epoch && a.PLogOffset == b.PLogOffset && a.Workspace == b.Workspace &&
		a.WorkspaceKind == b.WorkspaceKind && a.WLogOffset == b.WLogOffset && a.RegisteredAt == b.RegisteredAt && a.Zone == b.Zone &&
		slices.Equal(a.Numbers, b.Numbers)
}
