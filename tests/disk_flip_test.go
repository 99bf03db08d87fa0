package tests

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/tests/internal/powerloss"
)

// flipTally counts what became of damages.
type flipTally struct {
	planted, harmless, wrong int
	found                    map[string]int
}

func (f *flipTally) count(v verdict) {
	f.planted++
	switch {
	case len(v.wrong) > 0:
		f.wrong++
	case v.by == "":
		f.harmless++
	default:
		if f.found == nil {
			f.found = make(map[string]int)
		}
		f.found[v.by]++
	}
}

func (f *flipTally) add(other *flipTally) {
	f.planted, f.harmless, f.wrong = f.planted+other.planted, f.harmless+other.harmless, f.wrong+other.wrong
	if f.found == nil {
		f.found = make(map[string]int)
	}
	for by, n := range other.found {
		f.found[by] += n
	}
}

func (f *flipTally) String() string {
	open, read, verified := f.found["open"], f.found["read"], f.found["verify"]
	return fmt.Sprintf("planted=%d found=%d open=%d read=%d verify=%d harmless=%d wrong=%d",
		f.planted, open+read+verified, open, read, verified, f.harmless, f.wrong)
}

// certain reports whether a flip of a kind of region must be found: what has a checksum,
// what is compared with what has one, and keys, since another one is nobody's.
func certain(kind string) bool {
	return kind == "meta" || strings.HasSuffix(kind, "/value") || strings.HasSuffix(kind, "/key")
}

// TestFlips flips bits in each kind of page and value of all files. Each is found, when
// the store is opened, when what it is about is read or by verify, or everything is read
// as it was. None becomes a wrong number, a wrong position, a lost event that nobody is told of, or the end of
// the process.
func TestFlips(t *testing.T) {
	s, want := killedSite(t, 60, 4)
	seed, flips := uint64(setting("SEED", 1)), setting("FLIPS", 2)
	random := rand.New(rand.NewPCG(seed, 0))
	kinds := make(map[string][]region)
	for _, file := range storeFiles {
		for _, r := range mapPages(t, s.path(file), file) {
			name := strings.TrimSuffix(file, ".db") + "/" + r.kind
			kinds[name] = append(kinds[name], r)
		}
	}
	for _, r := range mapWAL(t, s) {
		kinds[walFile+"/"+r.kind] = append(kinds[walFile+"/"+r.kind], r)
	}
	var all flipTally
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		var tally flipTally
		for range flips {
			r := kinds[kind][random.IntN(len(kinds[kind]))]
			at, bit := r.at+random.IntN(r.size), random.IntN(8)
			damaged := s.copied(t)
			damaged.flipByte(t, r.file, at, bit)
			v := damaged.judge(t, want)
			check(t, os.RemoveAll(damaged.dir))
			tally.count(v)
			where := fmt.Sprintf("%s: byte %d of page %d, bit %d, SEED=%d", kind, at%os.Getpagesize(), at/os.Getpagesize(), bit, seed)
			for _, wrong := range v.wrong {
				t.Errorf("%s: %s", where, wrong)
			}
			if v.by == "" && certain(r.kind) {
				t.Errorf("%s: nothing has noticed it", where)
			}
		}
		t.Logf("flips of %-28s %v", kind, &tally)
		all.add(&tally)
	}
	t.Logf("flips: kinds=%d %v", len(kinds), &all)
}

// TestDamagedEvents flips a bit of each event in the log, one at a time: whoever opens or
// reads the store is told, without verify.
func TestDamagedEvents(t *testing.T) {
	s, want := damagedSite(t, 6, 2)
	random := rand.New(rand.NewPCG(uint64(setting("SEED", 1)), 0))
	for lsn := 1; lsn <= 8*6; lsn++ {
		damaged := s.copied(t)
		damaged.flip(t, logKey(messages.LSN(lsn)), random)
		v := damaged.judge(t, want)
		check(t, os.RemoveAll(damaged.dir))
		if v.by != "open" && v.by != "read" || len(v.wrong) > 0 {
			t.Errorf("LSN %d: found by %q, wrong: %v", lsn, v.by, v.wrong)
		}
	}
}

// copied copies a closed site. The copy is to be removed when it has been looked at.
func (s *site) copied(t testing.TB) *site {
	t.Helper()
	dir := scratch(t)
	check(t, powerloss.Copy(s.dir, dir))
	return s.at(dir)
}

// flipByte flips a bit of a byte of a closed store's file.
func (s *site) flipByte(t testing.TB, file string, at, bit int) {
	t.Helper()
	f := must(os.OpenFile(s.path(file), os.O_RDWR, 0))(t)
	defer func() { check(t, f.Close()) }()
	content := make([]byte, 1)
	must(f.ReadAt(content, int64(at)))(t)
	content[0] ^= 1 << bit
	must(f.WriteAt(content, int64(at)))(t)
}
