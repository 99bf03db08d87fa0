package bolt

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/verify"
)

// reserveOf returns a reserve for an empty file. It skips the test where the file
// system has no direct writes.
func reserveOf(t *testing.T, limit int64) (*reserve, *os.File) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	r := newReserve(f, f.Name(), limit)
	if r == nil {
		t.Skip("no direct writes here")
	}
	r.least = 0
	return r, f
}

// A committer that says how far it may write, and writes that far, finds what it has
// written, however near it comes to the reserve.
func TestReserveKeepsBehindTheCommitter(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r, f := reserveOf(t, 0)
		closing := make(chan struct{})
		go r.run(closing)
		end := rapid.Int64Range(0, 3*reserveChunk).Draw(rt, "end")
		for range rapid.IntRange(1, 12).Draw(rt, "commits") {
			size := rapid.Int64Range(1, 4*reserveChunk).Draw(rt, "size")
			r.claim(end, size)
			bound := r.bound.Load()
			// A page here and there is enough, the last one above all.
			page := bytes.Repeat([]byte{0xa5}, 4096)
			at := []int64{end, end + size, bound - int64(len(page))}
			for _, o := range at {
				if _, err := f.WriteAt(page, o); err != nil {
					rt.Fatal(err)
				}
			}
			if rapid.Bool().Draw(rt, "wait") {
				r.writing.Lock()
				r.writing.Unlock() //nolint:staticcheck // a chunk under way has ended
			}
			got := make([]byte, len(page))
			for _, o := range at {
				if _, err := f.ReadAt(got, o); err != nil || !bytes.Equal(got, page) {
					rt.Fatalf("what was written at %d of %d to %d is gone (%v)", o, end, bound, err)
				}
			}
			// The next commit begins anywhere in what this one could have used.
			end += rapid.Int64Range(0, bound-end).Draw(rt, "used")
		}
		close(closing)
		r.wait()
	})
}

// A commit that was let in before the first place was chosen is behind it.
func TestReserveStartsBehindTheCommitUnderWay(t *testing.T) {
	r, _ := reserveOf(t, 0)
	r.claim(5<<20, 1<<20)
	r.start()
	if got, want := r.from.Load(), r.bound.Load(); got < want {
		t.Errorf("the reserve begins at %d, a commit may write up to %d", got, want)
	}
	closeDirect(r.file, r.zeroes)
}

// The reserve ends with the file's limit, and the appends do not.
func TestReserveKeepsTheLimit(t *testing.T) {
	const limit = 16<<20 + reserveSlack + 4<<20
	r, f := reserveOf(t, limit)
	r.claim(16<<20, 0)
	if r.fill(nil) {
		t.Error("the reserve has not met the limit")
	}
	closeDirect(r.file, r.zeroes)
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > limit || info.Size() < limit-4*reserveChunk {
		t.Errorf("the file has %d bytes, want a little less than %d", info.Size(), limit)
	}
	r.claim(limit, 1<<20)
}

// A log that has grown has a reserve, which is of no account to whoever opens it
// again.
func TestReserveOfAStore(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	if s.reserve == nil {
		if out, zeroes := openDirect(filepath.Join(dir, logFileName), reserveChunk); out != nil {
			closeDirect(out, zeroes)
			t.Fatal("a new store has no reserve")
		}
		t.Skip("no direct writes here")
	}
	w := takeOver(t, s, 0)
	for ready := false; !ready; {
		e := w.event(2)
		e.Body = make([]byte, 2<<20)
		if err := w.try(e); err != nil {
			t.Fatal(err)
		}
		if s.log.size() > 16*reserveFrom {
			t.Fatal("a long log has no reserve")
		}
		from := s.reserve.from.Load()
		ready = from != math.MaxInt64 && from >= s.reserve.bound.Load()+reserveChunk
	}
	end := w.next
	closeStore(t, s)
	if report := verified(t, dir, verify.Options{}); report.Err() != nil {
		t.Error(report.Err())
	}
	if got := takeOver(t, open(t, dir, d, Options{}), 0).next; got != end {
		t.Errorf("the log ends before %d, want %d", got, end)
	}
}
