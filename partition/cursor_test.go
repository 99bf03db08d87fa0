package partition_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/storagetest"
)

// cursorOf returns the cursor behind so many events of a feed.
func (l *library) cursorOf(events int) partition.Cursor {
	l.t.Helper()
	f := l.feed("")
	l.page(f, events)
	return f.Cursor()
}

// readerOf returns a reader of an empty store of another application.
func readerOf(t *testing.T, change func(*messages.Descriptor)) *partition.Reader {
	d := storagetest.Descriptor(messages.TrustNone)
	change(&d)
	m, err := storagetest.NewMemory(d)
	noError(t, err)
	return partition.NewReader(m)
}

// TestCursorText: a cursor reads the same, in letters that stand anywhere in a URL; the
// zero cursor is no text.
func TestCursorText(t *testing.T) {
	l := memoryLibrary(t)
	l.fill(700, 0, 0, 0, 1)
	for _, events := range []int{1, 2, 200, 700} {
		c := l.cursorOf(events)
		isTrue(t, !c.IsZero(), "want false")
		isTrue(t, regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(c.String()), "got %q", c.String())
		again, err := l.reader.ParseCursor(c.String())
		noError(t, err)
		equal(t, c, again)
	}
	zero, err := l.reader.ParseCursor("")
	noError(t, err)
	isTrue(t, zero.IsZero(), "want true")
	equal(t, 0, len(zero.String()))
	f, err := l.reader.Feed(l.ctx, zero)
	noError(t, err)
	beginning := f.Cursor()
	isTrue(t, !beginning.IsZero(), "want false")
	l.sameLogs(l.read(l.feed(beginning.String()).Events(l.ctx)))
}

// TestCursorIsTheCallersOwn: a feed that goes on does not change a cursor that it gave, or
// that it was given.
func TestCursorIsTheCallersOwn(t *testing.T) {
	l := memoryLibrary(t)
	l.fill(30, 0, 1)
	given := l.cursorOf(5)
	text := given.String()
	f, err := l.reader.Feed(l.ctx, given)
	noError(t, err)
	got := f.Cursor()
	l.page(f, 10)
	equal(t, text, given.String())
	equal(t, text, got.String())
}

// TestCursorDamaged: each flipped bit, each missing end and each letter too many is told.
func TestCursorDamaged(t *testing.T) {
	l := memoryLibrary(t)
	l.fill(700, 0, 0, 0, 1)
	text := l.cursorOf(650).String()
	damaged := []string{text + "A", text + "=", "A" + text, text + "\n", text[:5] + "\n" + text[5:], text[:5] + "\r\n" + text[5:], text + text, " " + text, "é", "%"}
	for i := range text {
		if i > 0 {
			damaged = append(damaged, text[:i])
		}
		for bit := range 8 {
			b := []byte(text)
			b[i] ^= 1 << bit
			damaged = append(damaged, string(b))
		}
	}
	for _, d := range damaged {
		c, err := l.reader.ParseCursor(d)
		isError(t, err, partition.ErrCursor)
		isTrue(t, c.IsZero(), "%q", d)
	}
}

// TestCursorOfAnother: a cursor of another application, of another number of partitions,
// or ahead of the log is told, and why.
func TestCursorOfAnother(t *testing.T) {
	l := memoryLibrary(t)
	l.fill(30, 0, 0, 1)
	c := l.cursorOf(30)
	for want, change := range map[string]func(*messages.Descriptor){
		`wrong cursor: it is not of application "other"`: func(d *messages.Descriptor) { d.Application = "other" },
		`wrong cursor: it is not of 4 partitions`:        func(d *messages.Descriptor) { d.Partitions = 4 },
		`wrong cursor: it is not of 2 partitions`:        func(d *messages.Descriptor) { d.Partitions = 2 },
	} {
		other := readerOf(t, change)
		_, err := other.ParseCursor(c.String())
		isError(t, err, partition.ErrCursor)
		equal(t, want, err.Error())
		_, err = other.Feed(l.ctx, c)
		isError(t, err, partition.ErrCursor)
		isTrue(t, strings.Contains(err.Error(), `got one of application "storagetest" with 3 partitions`), "got %v", err)
	}
	// An older copy of the store has less.
	older := readerOf(t, func(*messages.Descriptor) {})
	c, err := older.ParseCursor(c.String())
	noError(t, err)
	_, err = older.Feed(l.ctx, c)
	isError(t, err, partition.ErrCursor)
	equal(t, "wrong cursor: it is ahead of the log: partition 0 ends at 0, the cursor is behind 20", err.Error())
}
