package dumps

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// everything dumps all groups, without a limit that a test could meet.
func everything() map[string]Group { return map[string]Group{AllGroups: {Rate: 1e9}} }

func cancelOf(group string, serial int) actors.Traffic {
	return actors.Traffic{
		Key: actors.Key{Group: group, ID: "1"}, Message: &messages.Cancel{Token: messages.Token{Serial: uint64(serial)}},
	}
}

// readAll returns the lines of files in order of time; none of them may be wrong.
func readAll(t testing.TB, paths ...string) []Line {
	t.Helper()
	var lines []Line
	for _, path := range paths {
		text, err := os.ReadFile(path)
		check(t, err)
		for l, err := range Read(bytes.NewReader(text)) {
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			lines = append(lines, l)
		}
	}
	SortByTime(lines)
	return lines
}

// expectNumbers checks that the lines of each group have the numbers 1 to n.
func expectNumbers(t *testing.T, lines []Line, n map[string]int) {
	t.Helper()
	got := make(map[string][]uint64)
	for _, l := range lines {
		got[l.Group] = append(got[l.Group], l.Number)
	}
	for group, want := range n {
		numbers := got[group]
		slices.Sort(numbers)
		if len(numbers) != want || numbers[0] != 1 || numbers[want-1] != uint64(want) || len(slices.Compact(numbers)) != want {
			t.Errorf("group %s: got %d numbers, want 1 to %d", group, len(numbers), want)
		}
	}
	if holes := Holes(lines); len(holes) > 0 {
		t.Errorf("got holes %+v", holes)
	}
}

// TestRotation: files are moved away under load, and the file is opened anew; all lines are in one of them, each once.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "dump")
	w, err := Open(path, Options{Groups: everything(), Memory: 64 << 20})
	check(t, err)
	const each = 5000
	var load sync.WaitGroup
	for i := range 4 {
		load.Go(func() {
			for n := range each {
				tell(w, cancelOf(fmt.Sprint("g", i/2), n))
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		load.Wait()
		close(ended)
	}()
	paths := []string{path}
	for under := true; under || len(paths) < 4; {
		select {
		case <-ended:
			under = false
		default:
		}
		moved := fmt.Sprintf("%s.%d", path, len(paths))
		check(t, os.Rename(path, moved))
		check(t, w.Reopen(limited(t)))
		paths = append(paths, moved)
	}
	check(t, w.Close(limited(t)))
	s := w.Stats()
	for _, g := range s.Groups {
		if g.Emitted != 2*each || g.Lost+g.Limited > 0 {
			t.Fatalf("got %+v", g)
		}
	}
	expectNumbers(t, readAll(t, paths...), map[string]int{"g0": 2 * each, "g1": 2 * each})
}

// TestReopenRemoved: a file that was removed is there again, and is its owner's alone.
func TestReopenRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	w, err := Open(path, Options{Groups: everything()})
	check(t, err)
	tell(w, cancelOf("g", 1))
	check(t, w.Reopen(limited(t)))
	expectNumbers(t, readAll(t, path), map[string]int{"g": 1})
	check(t, os.Remove(path))
	check(t, w.Reopen(limited(t)))
	tell(w, cancelOf("g", 2))
	check(t, w.Close(limited(t)))
	if lines := readAll(t, path); len(lines) != 1 || lines[0].Number != 2 {
		t.Errorf("got %+v", lines)
	}
	info, err := os.Stat(path)
	check(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v", info.Mode())
	}
	if err := w.Reopen(limited(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	check(t, w.Close(limited(t)))
}

// TestReopenFails: what cannot be opened leaves the file as it was.
func TestReopenFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dir")
	check(t, os.Mkdir(dir, 0o700))
	path := filepath.Join(dir, "dump")
	var told atomic.Int32
	w, err := Open(path, Options{Groups: everything(), Failed: func(error) { told.Add(1) }})
	check(t, err)
	moved := dir + ".moved"
	check(t, os.Rename(dir, moved))
	if err := w.Reopen(limited(t)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	tell(w, cancelOf("g", 1))
	check(t, w.Close(limited(t)))
	expectNumbers(t, readAll(t, filepath.Join(moved, "dump")), map[string]int{"g": 1})
	if told.Load() != 1 {
		t.Errorf("told %d times", told.Load())
	}
}

// TestAppends: a file that is there is written on.
func TestAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	for range 2 {
		w, err := Open(path, Options{Groups: everything()})
		check(t, err)
		tell(w, cancelOf("g", 1))
		check(t, w.Close(limited(t)))
	}
	if lines := readAll(t, path); len(lines) != 2 || lines[0].Number != 1 || lines[1].Number != 1 || len(Holes(lines)) > 0 {
		t.Errorf("got %+v", lines)
	}
}

// TestLimit: of what is above the rate only the numbers are used.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "dump")
		w, err := Open(path, Options{Groups: map[string]Group{"g": {Rate: 100}}})
		check(t, err)
		for range 3 {
			for n := range 30 {
				tell(w, cancelOf("g", n))
			}
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // in a bubble
		}
		check(t, w.Close(limited(t)))
		if s := w.Stats(); s.Groups[0] != (GroupStats{Group: "g", Emitted: 30, Limited: 60}) {
			t.Errorf("got %+v", s)
		}
		lines := readAll(t, path)
		holes := Holes(lines)
		if len(lines) != 30 || len(holes) != 2 || holes[0].First != 11 || holes[0].Last != 30 || holes[1].First != 41 || holes[1].Count() != 20 {
			t.Errorf("got %d lines with holes %+v", len(lines), holes)
		}
	})
}

// TestSwitches: groups and messages are switched on and off while messages flow; the numbers go on.
func TestSwitches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	w, err := Open(path, Options{})
	check(t, err)
	stop := actors.Traffic{Key: actors.Key{Group: "partition"}, Message: &messages.Stop{}}
	send := func() {
		tell(w, cancelOf("partition", 0))
		tell(w, stop)
		tell(w, cancelOf("flusher", 0))
	}
	send()
	for _, groups := range []map[string]Group{
		{"partition": {}}, {"partition": {Messages: []string{"Stop", "Start"}}}, {AllGroups: {Messages: []string{"Cancel"}}}, nil,
	} {
		check(t, w.SetGroups(groups))
		send()
	}
	err = w.SetGroups(map[string]Group{"flusher": {}, "partition": {Rate: -1}})
	if !errors.Is(err, messages.ErrSettings) || !strings.Contains(err.Error(), `group "partition": Rate: got -1, want at least 1`) {
		t.Errorf("got %v", err)
	}
	if err := w.SetGroups(map[string]Group{"x": {Longest: 1}}); !errors.Is(err, messages.ErrSettings) {
		t.Errorf("got %v", err)
	}
	send()
	check(t, w.Close(limited(t)))
	var got []string
	for _, l := range readAll(t, path) {
		got = append(got, fmt.Sprint(l.Group, " ", l.Message, " ", l.Number))
	}
	want := []string{"partition Cancel 1", "partition Stop 2", "partition Stop 3", "partition Cancel 4", "flusher Cancel 1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// slowFile takes nothing before it is let go.
type slowFile struct {
	bytes.Buffer
	writing, proceed chan struct{}
}

func (f *slowFile) Write(b []byte) (int, error) {
	f.writing <- struct{}{}
	<-f.proceed
	return f.Buffer.Write(b)
}

func (f *slowFile) Close() error { return nil }

// TestSlowDisk: while the file takes nothing, nobody who sends waits; what has no room is lost, and counted, and
// the memory is not exceeded.
func TestSlowDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowFile{writing: make(chan struct{}), proceed: make(chan struct{})}
		w, err := open("", Options{Groups: everything(), Memory: minMemory}, func(string, file) (file, error) { return f, nil })
		check(t, err)
		tell(w, cancelOf("g", 0))
		<-f.writing // it writes the first line, and will not end
		const n = 20_000
		for i := range n {
			tell(w, cancelOf("g", i)) // if it waited, all goroutines of the bubble would, which is reported
		}
		stats := w.Stats().Groups[0]
		if stats.Lost == 0 || stats.Emitted+stats.Lost != n+1 {
			t.Errorf("got %+v", stats)
		}
		waiting := 0
		for i := range w.buffers.each {
			waiting += cap(w.buffers.each[i].lines)
		}
		if waiting > minMemory {
			t.Errorf("%d bytes wait, want at most %d", waiting, minMemory)
		}
		close(f.proceed)
		go func() {
			for range f.writing {
			}
		}()
		check(t, w.Close(limited(t)))
		close(f.writing)
		if got := uint64(bytes.Count(f.Bytes(), []byte("\n"))); got != stats.Emitted {
			t.Errorf("got %d lines, want %d", got, stats.Emitted)
		}
		tell(w, cancelOf("g", 0))
		if got := w.Stats().Groups[0]; got.Lost != stats.Lost+1 {
			t.Errorf("after the close: got %+v", got)
		}
	})
}

// TestNothingDumpedTakesNothing: a writer without groups has no buffers; with the first line it has one.
func TestNothingDumpedTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slowFile{writing: make(chan struct{}, 1), proceed: make(chan struct{})}
		w, err := open("", Options{}, func(string, file) (file, error) { return f, nil })
		check(t, err)
		taken := func() (all int) {
			for i := range w.buffers.each {
				all += cap(w.buffers.each[i].lines)
			}
			return all
		}
		tell(w, cancelOf("g", 0))
		if got := taken(); got != 0 {
			t.Errorf("got %d bytes of buffers, want none", got)
		}
		check(t, w.SetGroups(everything()))
		tell(w, cancelOf("g", 0))
		if got := taken(); got != w.buffers.size {
			t.Errorf("got %d bytes of buffers, want %d", got, w.buffers.size)
		}
		close(f.proceed)
		check(t, w.Close(limited(t)))
	})
}

var errNoSpace = errors.New("no space left")

// fullFile takes so many bytes, and then no more until there is room.
type fullFile struct {
	bytes.Buffer
	room int
}

func (f *fullFile) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	f.Buffer.Write(b[:n])
	if n < len(b) {
		return n, errNoSpace
	}
	return n, nil
}

func (f *fullFile) Close() error { return nil }

// TestFullDisk: what the file does not take is given up and counted. When there is room again, lines are whole again: of
// those that were cut, one is left, which the reader tells.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fullFile{room: 1000}
		var told []error
		w, err := open("", Options{Groups: everything(), Failed: func(err error) { told = append(told, err) }},
			func(string, file) (file, error) { return f, nil })
		check(t, err)
		send := func() {
			for n := range 10 {
				tell(w, cancelOf("g", n))
			}
			time.Sleep(time.Second) //nolint:forbidigo // in a bubble: it has been written, or not
		}
		send()
		send()
		s := w.Stats()
		if !errors.Is(s.Err, errNoSpace) || s.Groups[0].Emitted != 20 {
			t.Errorf("got %+v", s)
		}
		written := uint64(bytes.Count(f.Bytes(), []byte("\n")))
		if s.Unwritten != 20-written || f.Bytes()[f.Len()-1] == '\n' {
			t.Errorf("got %d written, %d not; %q", written, s.Unwritten, f.Bytes())
		}
		f.room = 1 << 20
		send()
		check(t, w.Close(limited(t)))
		var bad, good int
		for l, err := range Read(&f.Buffer) {
			if errors.Is(err, ErrLine) {
				bad++
			} else if check(t, err); l.Number > 20 {
				good++
			}
		}
		if bad != 1 || good != 10 {
			t.Errorf("got %d bad lines and %d good ones", bad, good)
		}
		if len(told) != 2 || !errors.Is(told[0], errNoSpace) || told[1] != nil {
			t.Errorf("told %v", told)
		}
		if w.Stats().Unwritten != s.Unwritten {
			t.Errorf("got %+v", w.Stats())
		}
	})
}

// TestDevFull: a file system that is full, as the kernel tells it.
func TestDevFull(t *testing.T) {
	const path = "/dev/full"
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no " + path)
	}
	w, err := Open(path, Options{Groups: everything()})
	check(t, err)
	tell(w, cancelOf("g", 1))
	if err := w.Close(limited(t)); err == nil || w.Stats().Unwritten != 1 {
		t.Errorf("got %v, %+v", err, w.Stats())
	}
}

// TestOpenRefuses: what is wrong is refused, and nothing is left.
func TestOpenRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	for _, o := range []Options{{Memory: 1}, {Groups: map[string]Group{"g": {Rate: -1}}}} {
		if _, err := Open(path, o); !errors.Is(err, messages.ErrSettings) {
			t.Errorf("%+v: got %v", o, err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Open(filepath.Join(path, "x"), Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestNodes: two processes whose files are looked at together have no holes, whatever they have counted; nor has one that
// gets its node while it dumps.
func TestNodes(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for node := range uint16(3) {
		path := filepath.Join(dir, fmt.Sprint(node))
		paths = append(paths, path)
		w, err := Open(path, Options{Groups: everything(), Node: node})
		check(t, err)
		defer func() { check(t, w.Close(limited(t))) }()
		for n := range 10 * int(node+1) {
			if n == 5 && node == 0 {
				w.SetNode(9)
			}
			tell(w, cancelOf("g", n))
		}
		check(t, w.Reopen(limited(t)))
	}
	lines := readAll(t, paths...)
	of := make(map[uint16]int)
	for _, l := range lines {
		of[l.Node]++
	}
	if want := map[uint16]int{0: 5, 9: 5, 1: 20, 2: 30}; !maps.Equal(of, want) {
		t.Errorf("got %v, want %v", of, want)
	}
	if holes := Holes(lines); len(holes) > 0 {
		t.Errorf("got holes %+v", holes)
	}
}

// TestDirections: a line says whether its actor has received or sent the message.
func TestDirections(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	w, err := Open(path, Options{Groups: map[string]Group{AllGroups: {}}})
	check(t, err)
	w.Received(cancelOf("g", 1))
	w.Sent(cancelOf("g", 2))
	check(t, w.Close(limited(t)))
	lines := readAll(t, path)
	if len(lines) != 2 || lines[0].Direction != In || lines[1].Direction != Out {
		t.Errorf("got %+v, want In, then Out", lines)
	}
}

// TestWantsNothing: who dumps no group need not be told of anything.
func TestWantsNothing(t *testing.T) {
	w, err := Open(filepath.Join(t.TempDir(), "dump"), Options{})
	check(t, err)
	for _, groups := range []map[string]Group{nil, {"g": {}}, nil} {
		check(t, w.SetGroups(groups))
		if got := w.WantsTraffic(actors.Key{Group: "g"}, 1); got != (groups != nil) {
			t.Errorf("got %v with %v", got, groups)
		}
	}
	check(t, w.Close(limited(t)))
}

// TestWantedBefore: what the groups in force do not want is not written, though those before did when they were asked.
func TestWantedBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump")
	w, err := Open(path, Options{Groups: everything()})
	check(t, err)
	for _, groups := range []map[string]Group{{"g": {Messages: []string{"Append"}}}, nil, everything()} {
		m := cancelOf("g", 1)
		if !w.WantsTraffic(m.Key, m.Message) {
			t.Fatal("does not want what all groups want")
		}
		check(t, w.SetGroups(groups))
		w.Received(m)
		check(t, w.SetGroups(everything()))
	}
	check(t, w.Close(limited(t)))
	expectNumbers(t, readAll(t, path), map[string]int{"g": 1})
}
