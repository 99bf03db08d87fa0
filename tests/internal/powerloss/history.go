package powerloss

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// History is what happened to the files of a directory.
type History struct {
	dir string
	// base are the names in the beginning.
	base  map[string]*node
	nodes []*node
	// names are the changes of the directory, in order.
	names []change
	// Places are where something was begun or ended that changes what a loss of power
	// leaves, in order.
	Places []int
	// Lines are what the process has told others, in order.
	Lines []Line
	// Injected counts the calls that strace let fail.
	Injected int

	journalFD int
	// named are the files that have a name in the end.
	named map[string]*node
}

// Line is one line of the journal.
type Line struct {
	// Place is where it began to be written.
	Place int
	Text  []byte
}

// node is a file, whatever its names are.
type node struct {
	base *content
	// changes are in the order in which they began.
	changes []change
	size    int64
	// cut says that the last change makes the file smaller.
	cut bool
	// synced says that its writes are durable when they return.
	synced bool
}

// change is a change of a file or of the directory.
type change struct {
	begin, end int
	// durable is the place behind which it cannot be lost.
	durable int
	// doomed says that a sync that was about it has failed. The kernel may have dropped
	// it, and no later sync vouches for it.
	doomed bool

	// A write of a file, or its new size if there is no data. cut says that the size is a
	// smaller one.
	at   int64
	data []byte
	cut  bool

	// A change of a directory: name is made to mean node, or nothing.
	name string
	node *node
}

// historian builds a history.
type historian struct {
	*History
	// opened are the files by the path that they were opened under.
	opened map[string]*node
	// writers are where the next write goes, by descriptor, of what is open to be written alone:
	// reads move it, too, and are not in the record.
	writers map[int]int64
	line    []byte
	lineAt  int
}

// NewHistory makes the history of the files directly in a directory. Before is a copy of
// the directory as it was in the beginning. What was written to the descriptor journalFD
// are the lines.
func NewHistory(calls []Call, dir, before string, journalFD int) (*History, error) {
	b := newHistorian(dir, journalFD)
	if err := b.start(before); err != nil {
		return nil, err
	}
	return b.tell(calls)
}

func newHistorian(dir string, journalFD int) *historian {
	return &historian{
		History: &History{dir: dir, journalFD: journalFD, base: make(map[string]*node), named: make(map[string]*node)},
		opened:  make(map[string]*node),
		writers: make(map[int]int64),
	}
}

// tell takes the calls of a process.
func (b *historian) tell(calls []Call) (*History, error) {
	for i := range calls {
		c := &calls[i]
		if c.Injected {
			b.Injected++
		}
		if !c.counts() {
			continue
		}
		if err := b.add(c); err != nil {
			return nil, err
		}
	}
	slices.Sort(b.Places)
	b.Places = slices.Compact(b.Places)
	return b.History, nil
}

// counts reports whether a call has changed anything, or may have. A write that failed
// may have written all the same, unless strace let it fail; a sync that failed must be
// known.
func (c *Call) counts() bool {
	switch {
	case c.Result >= 0 || c.End == never || c.isSync():
		return true
	case c.Name == "pwrite64", c.Name == "write":
		return !c.Injected
	}
	return false
}

func (c *Call) isSync() bool { return c.Name == "fsync" || c.Name == "fdatasync" }

func (b *historian) start(before string) error {
	entries, err := os.ReadDir(before)
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(before, e.Name()))
		if err != nil {
			return err
		}
		n := &node{base: newContent(data), size: int64(len(data))}
		b.base[e.Name()], b.named[e.Name()] = n, n
		b.nodes = append(b.nodes, n)
	}
	return nil
}

// add takes a call that did something, or may have.
func (b *historian) add(c *Call) error {
	switch c.Name {
	case "openat":
		return b.open(c)
	case "linkat":
		return b.rename(c, true)
	case "renameat", "renameat2":
		return b.rename(c, false)
	case "unlinkat":
		return b.unlink(c)
	case "mkdirat":
		return b.mkdir(c)
	case "write", "pwrite64", "lseek", "ftruncate", "fdatasync", "fsync", "writev", "pwritev", "fallocate", "sync_file_range":
		return b.change(c)
	case "creat", "truncate", "link", "unlink", "rename", "mkdir":
		return fmt.Errorf("%w: %s: not modelled", errTrace, c.Name)
	}
	return fmt.Errorf("%w: %s: unknown call", errTrace, c.Name)
}

// inDir returns the name of a path in the directory.
func (b *historian) inDir(path string) (string, bool) {
	name, ok := strings.CutPrefix(path, b.dir+"/")
	return name, ok && !strings.Contains(name, "/")
}

func (b *historian) open(c *Call) error {
	path, err := c.path(1)
	if err != nil {
		return err
	}
	name, ok := b.inDir(path)
	flags := c.arg(2)
	delete(b.writers, int(c.Result))
	if !ok || c.End == never {
		return nil
	}
	if strings.Contains(flags, "O_WRONLY") && !strings.Contains(flags, "O_APPEND") {
		b.writers[int(c.Result)] = 0
	}
	if strings.Contains(flags, "O_TRUNC") {
		return fmt.Errorf("%w: %s is opened to be cut: not modelled", errTrace, name)
	}
	if b.named[name] == nil {
		n := &node{base: newContent(nil)}
		b.nodes = append(b.nodes, n)
		b.name(c, name, n)
	}
	n := b.named[name]
	n.synced = n.synced || strings.Contains(flags, "O_DSYNC")
	b.opened[path] = n
	return nil
}

// name notes that a name means another file from now on.
func (b *historian) name(c *Call, name string, n *node) {
	b.names = append(b.names, change{begin: c.Begin, end: c.End, durable: never, name: name, node: n})
	b.Places = append(b.Places, c.Begin+1)
	if n == nil {
		delete(b.named, name)
	} else {
		b.named[name] = n
	}
}

func (b *historian) rename(c *Call, keep bool) error {
	oldPath, err := c.path(1)
	if err != nil {
		return err
	}
	newPath, err := c.path(3)
	if err != nil {
		return err
	}
	oldName, ok := b.inDir(oldPath)
	newName, too := b.inDir(newPath)
	switch {
	case !ok && !too:
		return nil
	case !ok || !too || b.named[oldName] == nil:
		return fmt.Errorf("%w: %s of %s to %s: not modelled", errTrace, c.Name, oldPath, newPath)
	}
	n := b.named[oldName]
	b.name(c, newName, n)
	if !keep {
		b.name(c, oldName, nil)
		b.opened[newPath] = n
	}
	return nil
}

func (b *historian) unlink(c *Call) error {
	path, err := c.path(1)
	if err != nil {
		return err
	}
	if name, ok := b.inDir(path); ok && b.named[name] != nil {
		b.name(c, name, nil)
	}
	return nil
}

// mkdir takes a directory that was made: whoever makes one in the directory keeps files there.
func (b *historian) mkdir(c *Call) error {
	path, err := c.path(1)
	if err != nil {
		return err
	}
	if name, ok := b.inDir(path); ok {
		return fmt.Errorf("%w: directory %s is made: not modelled", errTrace, name)
	}
	return nil
}

// change takes a call on an open file.
func (b *historian) change(c *Call) error {
	fd, path, err := c.descriptor()
	switch {
	case err != nil:
		return err
	case fd == b.journalFD && c.Name == "write":
		return b.told(c)
	case path == b.dir && c.isSync():
		if c.Result >= 0 { // else file systems try again
			b.synced(c, b.names)
		}
		return nil
	}
	n := b.opened[path]
	if _, ok := b.inDir(path); !ok {
		return nil
	}
	if n == nil {
		return fmt.Errorf("%w: %s of %s, which was not opened", errTrace, c.Name, path)
	}
	switch c.Name {
	case "fsync", "fdatasync":
		b.synced(c, n.changes)
		return nil
	case "lseek":
		if _, ok := b.writers[fd]; ok {
			b.writers[fd] = c.Result
		}
		return nil
	case "pwrite64":
		at, err := c.number(3)
		if err != nil {
			return err
		}
		return b.write(c, n, at)
	case "write":
		if at, ok := b.writers[fd]; ok && c.Result >= 0 && c.End != never {
			b.writers[fd] = at + c.Result
			return b.write(c, n, at)
		}
	case "ftruncate":
		size, err := c.number(1)
		if err != nil {
			return err
		}
		return b.changed(n, change{begin: c.Begin, end: c.End, durable: never, at: size, cut: size < n.size})
	}
	return fmt.Errorf("%w: %s of %s: not modelled", errTrace, c.Name, path)
}

func (b *historian) write(c *Call, n *node, at int64) error {
	data, err := c.text(1)
	if err != nil {
		return err
	}
	if c.End != never && c.Result >= 0 {
		data = data[:c.Result]
	}
	durable := never
	if n.synced && c.Result >= 0 {
		durable = c.End
	}
	return b.changed(n, change{begin: c.Begin, end: c.End, durable: durable, at: at, data: data})
}

// changed notes a change of a file. Nobody knows which one is the later of two that meet
// at the same time.
func (b *historian) changed(n *node, ch change) error {
	for i := len(n.changes) - 1; i >= 0 && i >= len(n.changes)-16; i-- {
		if last := &n.changes[i]; last.end > ch.begin && last.meets(&ch) {
			return fmt.Errorf("%w: two changes of the same bytes at the same time, at place %d", errTrace, ch.begin)
		}
	}
	if n.cut && n.changes[len(n.changes)-1].durable == never {
		return fmt.Errorf("%w: a change, at place %d, of what was made smaller and not synced: not modelled", errTrace, ch.begin)
	}
	n.changes, n.cut = append(n.changes, ch), ch.cut
	if n.size = max(n.size, ch.at+int64(len(ch.data))); ch.cut {
		n.size = ch.at
	}
	b.Places = append(b.Places, ch.begin+1)
	if ch.end != never {
		b.Places = append(b.Places, ch.end+1)
	}
	return nil
}

// meets reports whether two writes have a sector in common. Sizes have none.
func (ch *change) meets(other *change) bool {
	return ch.data != nil && other.data != nil &&
		ch.at/sector*sector < other.at+int64(len(other.data)) && other.at/sector*sector < ch.at+int64(len(ch.data))
}

// synced notes that all changes that had ended before a sync are durable when it has, or
// never if it failed.
func (b *historian) synced(c *Call, changes []change) {
	if c.End == never {
		return
	}
	b.Places = append(b.Places, c.End+1)
	for i := range changes {
		switch ch := &changes[i]; {
		case ch.durable != never || ch.doomed || ch.end >= c.Begin:
		case c.Result < 0:
			ch.doomed = true
		default:
			ch.durable = c.End
		}
	}
}

// told takes what was written to the journal.
func (b *historian) told(c *Call) error {
	text, err := c.text(1)
	if err != nil || c.End == never || c.Result < 0 {
		return err
	}
	if len(b.line) == 0 {
		b.lineAt = c.Begin
	}
	b.line = append(b.line, text[:c.Result]...)
	for {
		line, rest, whole := bytes.Cut(b.line, []byte("\n"))
		if !whole {
			return nil
		}
		b.Lines = append(b.Lines, Line{Place: b.lineAt, Text: line})
		b.line, b.lineAt = rest, c.Begin
	}
}
