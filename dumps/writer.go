package dumps

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// Options are those of a [Writer]. The zero value is fine: nothing is dumped until SetGroups.
type Options struct {
	// Groups are what is dumped from the start, see [Writer.SetGroups].
	Groups map[string]Group
	// Node tells the lines of this process from those of others, whose files are looked at together. 0
	// means that there are no others.
	Node uint16
	// Memory bounds what waits to be written, in bytes, with what is being written. Default 8 MiB, at
	// least 1 MiB.
	Memory int
	// Failed is called when writing has begun to fail, or opening anew has failed, with the reason; and
	// with nil when lines are written again. It is called on the writer's goroutine, and may be nil.
	Failed func(error)
}

// What [Options] have by default.
const (
	defaultMemory = 8 << 20
	minMemory     = 1 << 20
)

// gatherTime is how long lines wait for more, unless half of a buffer is full.
const gatherTime = 5 * time.Millisecond

// Writer is an observer of actors that writes their messages to a file. It is safe for concurrent use.
// It never blocks whoever it observes: lines for which there is no room are lost, and counted.
type Writer struct {
	path    string
	node    atomic.Pointer[string]
	start   time.Time
	failed  func(error)
	groups  groups
	buffers *buffers
	scratch sync.Pool // of *text

	unwritten atomic.Uint64
	lastErr   atomic.Pointer[error]

	reopen    chan chan error
	closing   chan struct{}
	closeOnce sync.Once
	ended     chan struct{}
	closeErr  error // there when ended is closed
	file      file
	torn      bool   // the file ends within a line
	spare     []byte // memory for the buffer that is taken next
	isFailing bool
	opener    func(path string, before file) (file, error)
}

// file is what a writer writes to.
type file interface {
	Write(b []byte) (int, error)
	Close() error
}

var _ actors.TrafficSwitch = (*Writer)(nil)

// Open opens the file, or makes it, for its owner alone to read, and writes behind what is there. It returns
// ErrSettings of package messages, [ErrFile] if the file is none for a dump or another writer has it, or the error of
// opening. Close ends the writer.
func Open(path string, o Options) (*Writer, error) {
	return open(path, o, openFile)
}

func open(path string, o Options, opener func(path string, before file) (file, error)) (*Writer, error) {
	o.Memory = cmp.Or(o.Memory, defaultMemory)
	if o.Memory < minMemory {
		return nil, fmt.Errorf("%w: Memory: got %d, want at least %d", messages.ErrSettings, o.Memory, minMemory)
	}
	w := &Writer{
		path: path, start: time.Now(), failed: o.Failed, buffers: newBuffers(o.Memory), opener: opener,
		reopen: make(chan chan error), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	w.scratch.New = func() any { return new(text) }
	w.groups.byName.Store(&map[string]*group{})
	w.SetNode(o.Node)
	if err := w.SetGroups(o.Groups); err != nil {
		return nil, err
	}
	var err error
	if w.file, err = opener(path, nil); err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

// SetGroups says of which groups of actors messages are dumped from now on, in place of what was said
// before; [AllGroups] stands for those that are not named. Partita's groups are partition, its leaves flusher,
// actualizer, reader and appender, command-processor, lane (of a subscription) and its leaf deliverer. It returns ErrSettings of
// package messages if a setting is wrong, and changes nothing then.
func (w *Writer) SetGroups(groups map[string]Group) error { return w.groups.set(groups) }

// SetNode changes [Options].Node for the lines that come. Their numbers go on.
func (w *Writer) SetNode(node uint16) {
	text := ""
	if node > 0 {
		text = `,"n":` + strconv.Itoa(int(node))
	}
	w.node.Store(&text)
}

// Posted implements [actors.Observer].
func (w *Writer) Posted(actors.Key, any) {}

// Taken implements [actors.Observer].
func (w *Writer) Taken(actors.Key, any) {}

// Handled implements [actors.Observer].
func (w *Writer) Handled(actors.Key, any) {}

// WantsTraffic implements [actors.TrafficSwitch]: it reports whether a message is to be dumped, and counts it if it is above
// the rate of its group.
func (w *Writer) WantsTraffic(key actors.Key, message any) bool {
	if !w.groups.some.Load() {
		return false
	}
	g := w.groups.of(key.Group)
	r := g.rule.Load()
	if r == nil || !r.wants(typeOf(message).name) {
		return false
	}
	if !r.limit.Allows(time.Since(w.start)) {
		g.number.Add(1)
		g.limited.Add(1)
		return false
	}
	return true
}

// Received implements [actors.TrafficObserver].
func (w *Writer) Received(m actors.Traffic) { w.dump(&m, In) }

// Sent implements [actors.TrafficObserver].
func (w *Writer) Sent(m actors.Traffic) { w.dump(&m, Out) }

// dump writes a message that is wanted.
func (w *Writer) dump(m *actors.Traffic, d Direction) {
	g := w.groups.of(m.Key.Group)
	r := g.rule.Load()
	described := typeOf(m.Message)
	if r == nil || !r.wants(described.name) {
		return // since now
	}
	t := w.scratch.Get().(*text) //nolint:errcheck // there is nothing else in it
	t.bytes, t.longest, t.bodies, t.depth = t.bytes[:0], r.longest, r.bodies, 0
	t.line(m, d, &lineHead{group: g, node: *w.node.Load(), number: g.number.Add(1), now: time.Now()}, described)
	if w.buffers.add(t.bytes) {
		g.emitted.Add(1)
	} else {
		g.lost.Add(1)
	}
	w.scratch.Put(t)
}

// Stats say what became of the lines so far.
type Stats struct {
	// Groups are in order of their names.
	Groups []GroupStats
	// Unwritten is how many of the emitted lines, of all groups, the file did not take.
	Unwritten uint64
	// Err is why writing fails, nil if it does not.
	Err error
}

// GroupStats say what became of the lines of a group.
type GroupStats struct {
	Group string
	// Emitted lines were handed to the file, or wait for that. Limited were above the group's rate. Lost
	// had no room in the buffers. Together they are the last sequence number.
	Emitted, Limited, Lost uint64
}

// Stats returns what became of the lines so far.
func (w *Writer) Stats() Stats {
	s := Stats{Unwritten: w.unwritten.Load()}
	if err := w.lastErr.Load(); err != nil {
		s.Err = *err
	}
	known := *w.groups.byName.Load()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		g := known[name]
		s.Groups = append(s.Groups, GroupStats{Group: name, Emitted: g.emitted.Load(), Limited: g.limited.Load(), Lost: g.lost.Load()})
	}
	return s
}

// Counts tells of each group what [Writer.Stats] says, and returns how many lines the file did not take: for package
// metrics, which does not know this one.
func (w *Writer) Counts(tell func(group string, emitted, limited, lost uint64)) (unwritten uint64) {
	s := w.Stats()
	for i := range s.Groups {
		g := &s.Groups[i]
		tell(g.Group, g.Emitted, g.Limited, g.Lost)
	}
	return s.Unwritten
}

// Reopen opens the file by its name, as after that was given to another one, and closes the one before. Lines
// that are under way are in one of them. If it is still the same file, nothing changes. If it cannot be opened, the one
// before stays, and the error is returned. It also returns [ErrClosed], and the cause of ctx's end: then it may happen later.
func (w *Writer) Reopen(ctx context.Context) error {
	answer := make(chan error, 1)
	select {
	case w.reopen <- answer:
	case <-w.ended:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close writes what waits, closes the file and returns the last error of writing, if that was failing, and that of
// closing. What comes later is lost. If ctx ends first, it returns the cause, and the rest happens later. Closing
// again is harmless.
func (w *Writer) Close(ctx context.Context) error {
	w.closeOnce.Do(func() {
		w.buffers.close()
		close(w.closing)
	})
	select {
	case <-w.ended:
		return w.closeErr
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
