package powerloss

import (
	"strings"
	"testing"
)

// The calls that make a directory new/final out of new/temporary, by name.
func publishing() map[string]string {
	at := coded("/")
	here, above, file := coded(dir), coded("/a/new"), coded(dir+"/f")
	return map[string]string{
		"above":      `7 mkdirat(AT_FDCWD<` + at + `>, "` + above + `", 0700) = 0`,
		"sync above": `7 fsync(9<` + coded("/a") + `>) = 0`,
		"open":       `7 openat(AT_FDCWD<` + at + `>, "` + file + `", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600) = 9<` + file + `>`,
		"write":      `7 write(9<` + file + `>, "` + coded(run("b", 4)) + `", 2048) = 2048`,
		"cut":        `7 ftruncate(9<` + file + `>, 1024) = 0`,
		"sync":       `7 fsync(9<` + file + `>) = 0`,
		"sync names": `7 fsync(9<` + here + `>) = 0`,
		"rename":     `7 renameat(AT_FDCWD<` + at + `>, "` + here + `", AT_FDCWD<` + at + `>, "` + coded("/a/new/final") + `") = 0`,
		"sync name":  `7 fsync(9<` + above + `>) = 0`,
	}
}

func publicationOf(t *testing.T, names ...string) (p *Publication, end int) {
	t.Helper()
	var r recording
	for _, name := range names {
		r.line("%s", publishing()[name])
	}
	end = 2 * strings.Count(r.String(), "\n")
	r.tell("done\n")
	p, err := NewPublication(r.calls(t), "/a/new/final", 3)
	if err != nil {
		t.Fatal(err)
	}
	return p, end
}

// Whatever sync is left out, it is said what can be lost.
func TestPublication(t *testing.T) {
	all := []string{"above", "sync above", "open", "write", "cut", "sync", "sync names", "rename", "sync name"}
	for left, want := range map[string]string{
		"":           "",
		"sync above": "/a/new",
		"sync":       "2 writes of f are not synced when it gets its name",
		"sync names": "1 names in it are not synced when it gets its own, the first is f",
		"sync name":  "/a/new/final",
	} {
		var names []string
		for _, name := range all {
			if name != left {
				names = append(names, name)
			}
		}
		p, end := publicationOf(t, names...)
		if got := strings.Join(append(p.Unsafe(), p.Losable(end)...), "; "); got != want {
			t.Errorf("without %q: got %q, want %q", left, got, want)
		}
	}
	p, _ := publicationOf(t, "open", "sync names", "rename", "write", "sync", "sync name")
	if got := p.Unsafe(); len(got) != 1 || !strings.HasPrefix(got[0], "it is changed") {
		t.Errorf("written behind its name: got %q", got)
	}
	if _, err := NewPublication(nil, "/a/new/final", 3); err == nil {
		t.Error("what is never renamed is taken")
	}
}

// A file that is made smaller has any size of before and after, until that is synced.
func TestMadeSmaller(t *testing.T) {
	p, end := publicationOf(t, "open", "sync names", "write", "sync", "cut", "rename")
	checkImages(t, images(t, p.History, end), "f=bb", "f=bbbb")
	if m := p.Named(); len(p.Unsafe()) != 1 || m.Losable() != 1 {
		t.Errorf("got %q, %d writes to lose, want 1 of each", p.Unsafe(), m.Losable())
	}
	p, end = publicationOf(t, "open", "sync names", "write", "cut", "sync", "rename")
	checkImages(t, images(t, p.History, end), "f=bb")
	var r recording
	for _, name := range []string{"open", "write", "cut", "write"} {
		r.line("%s", publishing()[name])
	}
	if _, err := NewHistory(r.calls(t), dir, t.TempDir(), 3); err == nil {
		t.Error("a write behind a size that is not synced is taken")
	}
}

// What is written one after the other goes where the last write or the last seek has ended.
func TestWritesInOrder(t *testing.T) {
	var r recording
	at := coded(dir + "/f")
	r.line("%s", publishing()["open"])
	for _, c := range []string{"c", "d"} {
		r.line(`7 write(9<%s>, "%s", 512) = 512`, at, coded(run(c, 1)))
	}
	r.line(`7 lseek(9<%s>, 0, SEEK_SET) = 0`, at)
	r.line(`7 write(9<%s>, "%s", 512) = 512`, at, coded(run("e", 1)))
	r.call("fsync", dir+"/f", ") = 0")
	r.call("fsync", dir, ") = 0")
	checkImages(t, images(t, r.history(t, nil), never), "f=ed")
}
