package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

func loseState(t testing.TB, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, format.StateFileName)); err != nil {
		t.Fatal(err)
	}
}

// TestVerifyWithoutState doctors the log in each way, and takes state.db away: what the log
// alone can show is found, and so is that the file is missing.
func TestVerifyWithoutState(t *testing.T) {
	doctored := append(doctoredLogs(), doctoring{"nothing", func(*testing.T, *Store) {}, nil})
	for _, d := range doctored {
		t.Run(d.name, func(t *testing.T) {
			dir, s := verifiable(t)
			d.do(t, s)
			closeStore(t, s)
			loseState(t, dir)
			r := verified(t, dir, verify.Options{})
			if r.FaultCount == 0 || r.Faults[0].Check != verify.CheckMissing || !strings.HasSuffix(r.Faults[0].Where, format.StateFileName) {
				t.Fatalf("got %v, want that %s is missing", r, format.StateFileName)
			}
			var got, want []string
			for _, f := range r.Faults[1:] {
				got = append(got, fmt.Sprintf("%v %s", f.Projection, strings.ReplaceAll(f.String(), dir+"/", "")))
			}
			for _, fault := range d.want {
				// Events with one id are found by the index.
				if strings.HasPrefix(fault, "false ") && !strings.HasPrefix(fault, "false dedup") {
					want = append(want, fault)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// What is kept of the faults is as many as the options say, the default too.
func TestVerifyWithoutStateKeepsTheFirst(t *testing.T) {
	dir, s := verifiable(t)
	closeStore(t, s)
	loseState(t, dir)
	log := openPlain(t, dir, format.RoleLog)
	expect.NoError(t, log.Update(func(tx *bbolt.Tx) error {
		for i := range 150 {
			if err := tx.Bucket(format.BucketHeader).Put([]byte{byte(i)}, nil); err != nil {
				return err
			}
		}
		return nil
	}))
	expect.NoError(t, log.Close())
	for limit, want := range map[int]int{0: 100, 1: 1, 200: 151} {
		r := verified(t, dir, verify.Options{MaxFaults: limit})
		expect.Equal(t, want, len(r.Faults))
		expect.Equal(t, uint64(151), r.FaultCount)
		expect.Equal(t, verify.CheckMissing, r.Faults[0].Check)
	}
}

// TestVerifyWithoutStateCounts: the first faults are kept in words, all are counted, and
// what was looked at is what there is, however little may be remembered.
func TestVerifyWithoutStateCounts(t *testing.T) {
	dir, s := verifiable(t)
	closeStore(t, s)
	loseState(t, dir)
	for _, memory := range []int64{0, 64 << 10, 1} {
		r := verified(t, dir, verify.Options{MaxMemory: memory})
		if r.Events != 9 || r.Workspaces != 3 || r.Numbers != 27 || r.FaultCount != 1 {
			t.Errorf("got %v", r)
		}
	}
	dir, s = verifiable(t)
	damageLog(t, s, 3)
	closeStore(t, s)
	loseState(t, dir)
	if r := verified(t, dir, verify.Options{MaxFaults: 1}); len(r.Faults) != 1 || r.FaultCount != 3 {
		t.Errorf("got %v", r)
	}
}

// TestOpenLog reads from log.db alone what the whole store tells, and changes nothing.
func TestOpenLog(t *testing.T) {
	dir, s := verifiable(t)
	closeStore(t, s)
	whole, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	want, err := whole.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log, plog, wlog := collectEvents(t, whole.Log(t.Context(), 2)), collectEvents(t, whole.PLog(t.Context(), 0, 3)), collectEvents(t, whole.WLog(t.Context(), 2, 2))
	closeStore(t, whole)
	loseState(t, dir)
	before := hashes(t, dir)
	if _, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true}); !errors.Is(err, ErrNoState) || !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want %v", err, ErrNoState)
	}
	l, err := OpenLog(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]bool{
		"log":  reflect.DeepEqual(collectEvents(t, l.Log(t.Context(), 2)), log),
		"plog": reflect.DeepEqual(collectEvents(t, l.PLog(t.Context(), 0, 3)), plog),
		"wlog": reflect.DeepEqual(collectEvents(t, l.WLog(t.Context(), 2, 2)), wlog),
	} {
		if !got {
			t.Errorf("%s differs", name)
		}
	}
	for _, err := range l.PLog(t.Context(), 2, 1) {
		if !errors.Is(err, messages.ErrWrongPartition) {
			t.Errorf("got %v, want %v", err, messages.ErrWrongPartition)
		}
	}
	in, err := l.Inspect(t.Context())
	if err != nil || !in.StateMissing || in.Events != want.Events || in.ID != want.ID || in.Log != want.Log {
		t.Errorf("got %+v, %v, want %+v", in, err, want)
	}
	for i, p := range in.Partitions {
		expected := want.Partitions[i]
		expected.Checkpoint = 1
		if p != expected || p.Lag() != uint64(p.Last) {
			t.Errorf("got %+v, want %+v", p, expected)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if hashes(t, dir) != before {
		t.Error("the files were changed")
	}
}
