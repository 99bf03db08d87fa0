package tests

import (
	"archive/zip"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestBeforeLimits: an application goes on with a store of a version that had no limits, without a change of its
// descriptor, up to 2^64-1 and no further.
func TestBeforeLimits(t *testing.T) {
	const invoice, last5 messages.SeqID = 16, 17
	s := newSite(t, 1, neverFlushed())
	z := must(zip.OpenReader("../storage/bolt/testdata/before_limits/store.zip"))(t)
	check(t, os.CopyFS(s.dir, z))
	check(t, z.Close())
	s.app.Descriptor = messages.Descriptor{Application: "test", Partitions: 2, Kinds: []messages.Kind{{
		ID: 1, Name: "tenant", Sequences: []messages.Sequence{
			{ID: invoice, Name: "invoice", Initial: 1000}, {ID: last5, Name: "last5", Initial: math.MaxUint64 - 4},
		},
	}}}
	d := s.run(t)
	take := func(ws messages.WSID, seq messages.SeqID, n uint32) ([]messages.SequenceNumber, error) {
		q := must(d.app.SequencerOf(ws))(t)
		done, err := q.Append(limit(t), partition.AppendTo{Workspace: ws, Kind: 1}, partition.Draft{Wanted: []partition.Wanted{{Seq: seq, Count: n}}})
		if err != nil {
			return nil, err
		}
		return done.Numbers, nil
	}
	ended := func(last messages.Number, n uint32) {
		t.Helper()
		_, err := take(3, last5, n)
		want := messages.OverflowError{Workspace: 3, Seq: last5, Name: "last5", Last: last, Largest: math.MaxUint64, Wanted: int(n)}
		if got, ok := errors.AsType[*messages.OverflowError](err); !ok || *got != want {
			t.Errorf("got %v, want %v", err, &want)
		}
	}
	if got := must(take(2, invoice, 1))(t); got[0].Number != 1005 {
		t.Errorf("got %v, want 1005", got)
	}
	_, err := must(d.app.SequencerOf(2))(t).Append(limit(t), partition.AppendTo{Workspace: 2, Kind: 1}, partition.Draft{
		Records: []partition.DraftRecord{{ID: messages.RecordID{Seq: invoice, Number: 1 << 63}, New: true}},
	})
	check(t, err)
	if got := must(take(2, invoice, 1))(t); got[0].Number != 1<<63+1 {
		t.Errorf("got %v, want 2^63+1", got)
	}
	ended(math.MaxUint64-2, 3)
	want := []messages.SequenceNumber{{Seq: last5, Number: math.MaxUint64 - 1}, {Seq: last5, Number: math.MaxUint64}}
	if got := must(take(3, last5, 2))(t); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	ended(math.MaxUint64, 1)
	d.crash(t)
	d = s.run(t)
	ended(math.MaxUint64, 1)
	d.stop(t)
}

// TestFormat4: an application goes on behind a move that a program of format 4 wrote, and below where it moved nothing.
func TestFormat4(t *testing.T) {
	const invoice messages.SeqID = 16
	for name, want := range map[string]messages.Number{"format4": 1002, "format4_moved": 1041} {
		s := newSite(t, 1, neverFlushed())
		z := must(zip.OpenReader("../storage/bolt/testdata/" + name + "/store.zip"))(t)
		check(t, os.CopyFS(s.dir, z))
		check(t, z.Close())
		s.app.Descriptor = messages.Descriptor{Application: "test", Partitions: 2, Kinds: []messages.Kind{{
			ID: 1, Name: "tenant", Sequences: []messages.Sequence{{ID: invoice, Name: "invoice", Initial: 1000}},
		}}}
		for range 2 {
			d := s.run(t)
			done, err := must(d.app.SequencerOf(2))(t).Append(limit(t), partition.AppendTo{Workspace: 2, Kind: 1}, partition.Draft{
				Wanted: []partition.Wanted{{Seq: invoice}},
			})
			check(t, err)
			if got := done.Numbers[0].Number; got != want {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
			want++
			d.crash(t)
		}
	}
}
