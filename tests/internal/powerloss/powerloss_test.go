package powerloss

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// coded is text as strace writes it.
func coded(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, `\x%02x`, c)
	}
	return b.String()
}

// recording makes records as strace does.
type recording struct{ strings.Builder }

const dir = "/a/store"

func (r *recording) line(format string, args ...any) { fmt.Fprintf(r, format+"\n", args...) }

func (r *recording) open(name string) {
	r.line(`7 openat(AT_FDCWD<%s>, "%s", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 9<%s>`, coded("/"), coded(dir+"/"+name), coded(dir+"/"+name))
}

func (r *recording) write(name string, at int, text string) {
	r.line(`7 pwrite64(9<%s>, "%s", %d, %d) = %d`, coded(dir+"/"+name), coded(text), len(text), at, len(text))
}

func (r *recording) call(name, file, rest string) {
	r.line(`8 %s(9<%s>%s`, name, coded(file), rest)
}

func (r *recording) tell(text string) {
	r.line(`9 write(3<%s>, "%s", %d) = %d`, coded("pipe:[77]"), coded(text), len(text), len(text))
}

func (r *recording) history(t *testing.T, before map[string]string) *History {
	t.Helper()
	base := t.TempDir()
	for name, text := range before {
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := NewHistory(r.calls(t), dir, base, 3)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (r *recording) calls(t *testing.T) []Call {
	t.Helper()
	calls, err := ReadTrace(strings.NewReader(r.String()))
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// images returns all images of a history cut at a place that some draws give, as text:
// what is behind the first letter of a run is left out.
func images(t *testing.T, h *History, place int) map[string]bool {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	m := h.Begin()
	m.Advance(place)
	all := make(map[string]bool)
	for range 500 {
		out := t.TempDir()
		if _, err := m.Write(out, random); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(out)
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(out, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, e.Name()+"="+shortened(data))
		}
		all[strings.Join(text, " ")] = true
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// shortened is one letter for each sector, a dot for an empty one.
func shortened(data []byte) string {
	var b strings.Builder
	for len(data) > 0 {
		n := min(sector, len(data))
		if data[0] == 0 {
			b.WriteByte('.')
		} else {
			b.WriteByte(data[0])
		}
		if !bytes.Equal(data[:n], bytes.Repeat(data[:1], n)) {
			b.WriteByte('!')
		}
		data = data[n:]
	}
	return b.String()
}

func run(letter string, sectors int) string { return strings.Repeat(letter, sectors*sector) }

func checkImages(t *testing.T, got map[string]bool, want ...string) {
	t.Helper()
	for _, image := range want {
		if !got[image] {
			t.Errorf("image %q is never made", image)
		}
		delete(got, image)
	}
	for image := range got {
		t.Errorf("image %q is not possible", image)
	}
}

func TestSyncedIsKept(t *testing.T) {
	var r recording
	r.open("f")
	r.write("f", 0, run("b", 2))
	r.call("fdatasync", dir+"/f", ") = 0")
	end := 2 * strings.Count(r.String(), "\n")
	h := r.history(t, map[string]string{"f": run("a", 3)})
	checkImages(t, images(t, h, end), "f=bba")
}

// Until the sync has returned, each sector has any of its versions.
func TestUnsyncedIsTornAndReordered(t *testing.T) {
	var r recording
	r.open("f")
	r.write("f", 0, run("b", 2))
	r.write("f", sector, run("c", 2))
	r.call("fdatasync", dir+"/f", " <unfinished ...>")
	r.tell("one\ntw")
	place := 2 * strings.Count(r.String(), "\n")
	r.line("8 <... fdatasync resumed>) = 0")
	r.tell("o\n")
	r.line("11 ???( <unfinished ...>")
	r.line("11 <... ??? resumed>) = ?")
	r.line("12 +++ exited with 0 +++")
	end := 2 * strings.Count(r.String(), "\n")
	h := r.history(t, map[string]string{"f": run("a", 3)})
	var want []string
	for _, first := range "ab" {
		for _, second := range "abc" {
			for _, third := range "ac" {
				want = append(want, "f="+string(first)+string(second)+string(third))
			}
		}
	}
	checkImages(t, images(t, h, place), want...)
	checkImages(t, images(t, h, end), "f=bcc")
	if len(h.Lines) != 2 || string(h.Lines[0].Text) != "one" || string(h.Lines[1].Text) != "two" || h.Lines[1].Place >= place {
		t.Errorf("got lines %+v", h.Lines)
	}
}

// A write that had not returned when the sync began is not vouched for, nor is what came
// before a sync that failed.
func TestSyncVouchesForNoMore(t *testing.T) {
	for name, record := range map[string]func(*recording){
		"it was under way": func(r *recording) {
			r.line(`7 pwrite64(9<%s>, "%s", %d, 0 <unfinished ...>`, coded(dir+"/f"), coded(run("b", 1)), sector)
			r.call("fdatasync", dir+"/f", ") = 0")
			r.line("7 <... pwrite64 resumed>) = 512")
		},
		"it failed": func(r *recording) {
			r.write("f", 0, run("b", 1))
			r.call("fdatasync", dir+"/f", ") = -1 EIO (Input/output error) (INJECTED)")
			r.call("fdatasync", dir+"/f", ") = 0")
		},
		"it was of another file": func(r *recording) {
			r.write("f", 0, run("b", 1))
			r.call("fsync", dir, ") = 0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r recording
			r.open("f")
			record(&r)
			checkImages(t, images(t, r.history(t, map[string]string{"f": run("a", 1)}), never), "f=a", "f=b")
		})
	}
}

// What a failed sync was about may be lost for ever; what is written and synced later is
// there.
func TestFailedSyncDoomsNoMore(t *testing.T) {
	var r recording
	r.open("f")
	r.write("f", 0, run("b", 2))
	r.call("fdatasync", dir+"/f", ") = -1 EIO (Input/output error)")
	r.write("f", sector, run("c", 2))
	r.call("fdatasync", dir+"/f", ") = 0")
	checkImages(t, images(t, r.history(t, map[string]string{"f": run("a", 3)}), never), "f=acc", "f=bcc")
}

// Two may write a file at the same time, each where the other does not.
func TestTwoWriters(t *testing.T) {
	var r recording
	r.open("f")
	r.line(`6 pwrite64(9<%s>, "%s", %d, %d <unfinished ...>`, coded(dir+"/f"), coded(run("z", 1)), sector, 2*sector)
	r.write("f", 0, run("b", 1))
	r.call("fdatasync", dir+"/f", ") = 0")
	place := 2 * strings.Count(r.String(), "\n")
	r.line("6 <... pwrite64 resumed>) = 512")
	r.call("fdatasync", dir+"/f", ") = 0")
	h := r.history(t, map[string]string{"f": run("a", 3)})
	checkImages(t, images(t, h, place), "f=baa", "f=baz")
	checkImages(t, images(t, h, never), "f=baz")
}

func TestSizesAreLost(t *testing.T) {
	var r recording
	r.open("f")
	r.call("ftruncate", dir+"/f", ", 2048) = 0")
	place := 2 * strings.Count(r.String(), "\n")
	r.call("fsync", dir+"/f", ") = 0")
	h := r.history(t, map[string]string{"f": run("a", 1)})
	checkImages(t, images(t, h, place), "f=a", "f=a...")
	checkImages(t, images(t, h, never), "f=a...")
}

// Writes to a file that was opened for it are durable when they return; one that has failed
// may be there.
func TestSyncedWrites(t *testing.T) {
	var r recording
	path := coded(dir + "/f")
	r.line(`7 openat(AT_FDCWD<%s>, "%s", O_WRONLY|O_CREAT|O_EXCL|O_DSYNC|O_DIRECT|O_CLOEXEC, 0600) = 9<%s>`, coded("/"), path, path)
	r.call("fsync", dir, ") = 0")
	r.write("f", 0, run("a", 1))
	r.line(`7 pwrite64(9<%s>, "%s", 512, 512) = -1 EIO (Input/output error)`, path, coded(run("b", 1)))
	h := r.history(t, nil)
	checkImages(t, images(t, h, never), "f=a", "f=ab")
}

// Names are lost in their order, until the directory is synced.
func TestNamesAreLost(t *testing.T) {
	var r recording
	r.open("new")
	r.write("new", 0, run("n", 1))
	r.call("fdatasync", dir+"/new", ") = 0")
	r.line(`7 linkat(AT_FDCWD<%s>, "%s", AT_FDCWD<%s>, "%s", 0) = 0`, coded("/"), coded(dir+"/new"), coded("/"), coded(dir+"/f"))
	r.line(`7 unlinkat(AT_FDCWD<%s>, "%s", 0) = 0`, coded("/"), coded(dir+"/new"))
	place := 2 * strings.Count(r.String(), "\n")
	r.call("fsync", dir, ") = 0")
	h := r.history(t, nil)
	checkImages(t, images(t, h, place), "", "new=n", "f=n new=n", "f=n")
	checkImages(t, images(t, h, never), "f=n")
}

// A name is seen from the directory whose descriptor stands before it.
func TestNamesInDirectories(t *testing.T) {
	var r recording
	at, other := coded(dir), coded("/a/other")
	r.line(`7 openat(5<%s>, "%s", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 9<%s>`, at, coded("new"), coded(dir+"/new"))
	r.line(`7 openat(6<%s>, "%s", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 10<%s>`, other, coded("f"), coded("/a/other/f"))
	r.write("new", 0, run("n", 1))
	r.call("fdatasync", dir+"/new", ") = 0")
	r.line(`7 unlinkat(6<%s>, "%s", 0) = 0`, other, coded("new"))
	r.line(`7 renameat(5<%s>, "%s", 5<%s>, "%s") = 0`, at, coded("new"), at, coded("f"))
	r.line(`7 openat(5<%s>, "%s", O_RDONLY|O_CLOEXEC) = 11<%s>`, at, coded("."), at)
	r.call("fsync", dir, ") = 0")
	checkImages(t, images(t, r.history(t, nil), never), "f=n")
}

// What is not understood, or not modelled, is an error: an image would be wrong.
func TestUnknownIsRefused(t *testing.T) {
	for name, line := range map[string]string{
		"two writes that meet": `6 pwrite64(9<` + coded(dir+"/f") + `>, "` + coded(run("a", 2)) + `", 1024, 0 <unfinished ...>` + "\n" +
			`7 pwrite64(9<` + coded(dir+"/f") + `>, "\x61", 1, 600) = 1`,
		"a text cut short":     `7 pwrite64(9<` + coded(dir+"/f") + `>, "\x61"..., 4096, 0) = 4096`,
		"a write not known":    `7 pwritev(9<` + coded(dir+"/f") + `>, 1, 1, 0) = 1`,
		"another open":         `7 openat(AT_FDCWD<` + coded("/") + `>, "` + coded(dir+"/f") + `", O_RDWR|O_TRUNC) = 9<` + coded(dir+"/f") + `>`,
		"nothing to resume":    `7 <... pwrite64 resumed>) = 1`,
		"no result":            `7 pwrite64(9<` + coded(dir+"/f") + `>, "\x61", 1, 0)`,
		"a file not opened":    `7 fdatasync(9<` + coded(dir+"/g") + `>) = 0`,
		"a call not asked for": `7 mkdir("\x61") = 0`,
	} {
		t.Run(name, func(t *testing.T) {
			var r recording
			r.open("f")
			r.line("%s", line)
			calls, err := ReadTrace(strings.NewReader(r.String()))
			if err == nil {
				_, err = NewHistory(calls, dir, t.TempDir(), 3)
			}
			if err == nil {
				t.Error("it is taken")
			}
		})
	}
}
