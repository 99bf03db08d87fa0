package powerloss

import "testing"

// next is the history of a process after that of another one.
func next(t *testing.T, before *History, r *recording) *History {
	t.Helper()
	h, err := before.Next(r.calls(t))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What a failed sync was about may be lost after the next process has synced the file, where that
// has not written; what was not yet synced is safe then.
func TestNextAfterAFailedSync(t *testing.T) {
	for name, c := range map[string]struct {
		result       string
		begins, ends []string
	}{
		"it failed":           {") = -1 EIO (Input/output error) (INJECTED)", []string{"f=aaa", "f=baa", "f=aba", "f=bba"}, []string{"f=aca", "f=bca"}},
		"it had not returned": {" <unfinished ...>", []string{"f=aaa", "f=baa", "f=aba", "f=bba"}, []string{"f=bca"}},
		"it succeeded":        {") = 0", []string{"f=bba"}, []string{"f=bca"}},
	} {
		t.Run(name, func(t *testing.T) {
			var first, second recording
			first.open("f")
			first.write("f", 0, run("b", 2))
			first.call("fdatasync", dir+"/f", c.result)
			second.open("f")
			second.write("f", sector, run("c", 1))
			second.call("fdatasync", dir+"/f", ") = 0")
			h := next(t, first.history(t, map[string]string{"f": run("a", 3)}), &second)
			checkImages(t, images(t, h, 0), c.begins...)
			checkImages(t, images(t, h, never), c.ends...)
			checkImages(t, images(t, next(t, h, &recording{}), never), c.ends...)
		})
	}
}

// What the process before has overwritten for good stays so.
func TestNextKeepsWhatIsDurable(t *testing.T) {
	var first recording
	first.open("f")
	first.write("f", 0, run("b", 2))
	first.call("fdatasync", dir+"/f", ") = -1 EIO (Input/output error)")
	first.write("f", sector, run("c", 2))
	first.call("fdatasync", dir+"/f", ") = 0")
	h := next(t, first.history(t, map[string]string{"f": run("a", 3)}), &recording{})
	checkImages(t, images(t, h, 0), "f=acc", "f=bcc")
}

// A name is lost as long as no sync of the directory vouches for it, be it that of another process.
func TestNextKeepsNames(t *testing.T) {
	var first, second recording
	first.open("new")
	first.write("new", 0, run("n", 1))
	first.call("fdatasync", dir+"/new", ") = 0")
	second.call("fsync", dir, ") = 0")
	h := next(t, first.history(t, nil), &second)
	checkImages(t, images(t, h, 0), "", "new=n")
	checkImages(t, images(t, h, never), "new=n")
}
