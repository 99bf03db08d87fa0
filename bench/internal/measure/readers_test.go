package measure

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/partita-go/partita/bench/internal/audit"
	"github.com/partita-go/partita/bench/internal/report"
)

// followedRow keeps events in one log, whose readers are told of them by a signal.
type followedRow struct {
	fakeRow

	// spoil changes what a reader has of an event; what it returns is what it sees.
	spoil func(reader int, e audit.Event) []audit.Event
	// early ends a reader before the writers.
	early bool

	log   sync.Mutex
	made  [2]uint64 // of each caller
	all   []audit.Event
	grown chan struct{} // closed when all grows
}

func newFollowedRow() *followedRow { return &followedRow{grown: make(chan struct{})} }

func (f *followedRow) Do(ctx context.Context, caller int) error {
	if err := f.fakeRow.Do(ctx, caller); err != nil {
		return err
	}
	f.log.Lock()
	defer f.log.Unlock()
	f.made[caller]++
	f.all = append(f.all, audit.Event{Position: audit.Position{int64(len(f.all)) + 1}, Writer: caller, Number: f.made[caller]})
	close(f.grown)
	f.grown = make(chan struct{})
	return nil
}

func (f *followedRow) Follow(ctx, writing context.Context, reader int, see func(audit.Event) error) error {
	for next := 0; ; {
		over := hasEnded(writing)
		f.log.Lock()
		events, grown := f.all[next:], f.grown
		f.log.Unlock()
		if len(events) == 0 && over || f.early {
			return nil
		}
		for _, e := range events {
			for _, seen := range f.seenAs(reader, e) {
				if err := see(seen); err != nil {
					return err
				}
			}
		}
		if next += len(events); len(events) > 0 {
			continue
		}
		select {
		case <-grown:
		case <-writing.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func hasEnded(ctx context.Context) bool { return ctx.Err() != nil }

func (f *followedRow) seenAs(reader int, e audit.Event) []audit.Event {
	if f.spoil == nil {
		return []audit.Event{e}
	}
	return f.spoil(reader, e)
}

// readWhileWritten measures a row with 2 callers and 3 readers for about 200 events.
func readWhileWritten(t *testing.T, f *followedRow) report.Result {
	t.Helper()
	plan := Plan{Warmup: 10 * time.Millisecond, Window: 100 * time.Millisecond, Workspaces: 5}
	spec := Spec{Name: "followed", Callers: 2, Readers: 3, New: func(s Settings) Row {
		if s.Readers != 3 {
			t.Errorf("got %+v, want 3 readers", s)
		}
		return f
	}}
	return plan.Measure(t.Context(), spec, t.TempDir())
}

func TestReadersSeeEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := readWhileWritten(t, newFollowedRow())
		if err := r.Err(false); err != nil || r.Readers != 3 || r.Reading == nil || len(r.Reading.Readers) != 3 || r.Acknowledged < 100 {
			t.Fatalf("got %+v, %v", r, err)
		}
		for i, reader := range r.Reading.Readers {
			if reader.Seen != r.Acknowledged || reader.Skipped+reader.Twice+reader.OutOfOrder != 0 || reader.Lag.Max > time.Millisecond {
				t.Errorf("reader %d: got %+v, want %d events", i, reader, r.Acknowledged)
			}
		}
	})
}

// What is spoiled for one reader is told of that one.
func TestReadersThatAreSpoiled(t *testing.T) {
	var kept []audit.Event // of the reader that is late
	for name, tt := range map[string]struct {
		spoil func(e audit.Event) []audit.Event
		want  report.Reader // but for Seen and Lag
	}{
		"skips": {
			spoil: func(e audit.Event) []audit.Event {
				if e.Position[0] == 7 || e.Position[0] == 20 {
					return nil
				}
				return []audit.Event{e}
			},
			want: report.Reader{Skipped: 2},
		},
		"sees again": {
			spoil: func(e audit.Event) []audit.Event {
				if e.Position[0] == 7 {
					return []audit.Event{e, e}
				}
				return []audit.Event{e}
			},
			want: report.Reader{Twice: 1},
		},
		"is late": {
			spoil: func(e audit.Event) []audit.Event {
				if e.Position[0] == 7 {
					kept = append(kept, e)
					return nil
				}
				seen := append([]audit.Event{e}, kept...)
				kept = nil
				return seen
			},
			want: report.Reader{OutOfOrder: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFollowedRow()
				f.spoil = func(reader int, e audit.Event) []audit.Event {
					if reader == 1 {
						return tt.spoil(e)
					}
					return []audit.Event{e}
				}
				r := readWhileWritten(t, f)
				if r.Err(false) != nil || r.Reading == nil {
					t.Fatalf("got %+v", r)
				}
				for i, got := range r.Reading.Readers {
					want := report.Reader{Seen: r.Acknowledged - tt.want.Skipped, Skipped: tt.want.Skipped, Twice: tt.want.Twice, OutOfOrder: tt.want.OutOfOrder}
					if i != 1 {
						want = report.Reader{Seen: r.Acknowledged}
					}
					if got.Lag = (report.Lag{}); got != want {
						t.Errorf("reader %d: got %+v, want %+v", i, got, want)
					}
				}
			})
		})
	}
}

// The lag is from the acknowledgement to the moment when the reader has the event.
func TestLagOfReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 30 * time.Millisecond
		f := newFollowedRow()
		f.spoil = func(reader int, e audit.Event) []audit.Event {
			if reader == 1 && e.Position[0] == 100 {
				<-time.After(late)
			}
			return []audit.Event{e}
		}
		r := readWhileWritten(t, f)
		if r.Err(false) != nil || r.Reading == nil {
			t.Fatalf("got %+v", r)
		}
		for i, reader := range r.Reading.Readers {
			if isLate := reader.Lag.Max > late-time.Millisecond && reader.Lag.Max < late+time.Millisecond; isLate != (i == 1) {
				t.Errorf("reader %d: got lag %v", i, reader.Lag)
			}
		}
		if r.Reading.Lag.Max != r.Reading.Readers[1].Lag.Max {
			t.Errorf("all readers: got %v", r.Reading.Lag)
		}
	})
}

func TestReadersThatFail(t *testing.T) {
	for name, tt := range map[string]struct {
		atOnce bool // the load ends, too
		change func(*followedRow)
		want   string
	}{
		"ends early": {true, func(f *followedRow) { f.early = true }, "it ended before the writers"},
		"sees what nobody wrote": {true, func(f *followedRow) {
			f.spoil = func(_ int, e audit.Event) []audit.Event {
				e.Writer += 2
				return []audit.Event{e}
			}
		}, "got an event of writer"},
		"sees what nobody acknowledged": {false, func(f *followedRow) {
			f.spoil = func(_ int, e audit.Event) []audit.Event {
				other := e
				other.Number += 1_000_000
				return []audit.Event{e, other}
			}
		}, "events that were not acknowledged"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFollowedRow()
				tt.change(f)
				began := time.Now()
				r := readWhileWritten(t, f)
				if atOnce := time.Since(began) < 10*time.Millisecond; atOnce != tt.atOnce {
					t.Errorf("got the end after %v", time.Since(began))
				}
				if !strings.Contains(r.Failed, tt.want) || !strings.Contains(r.Failed, "readers: reader ") || r.Right() {
					t.Errorf("got failed %q, want %q", r.Failed, tt.want)
				}
			})
		})
	}
}

// endless is a row whose readers never come to the end.
type endless struct{}

func (endless) Follow(ctx, _ context.Context, _ int, _ func(audit.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestReadersThatDoNotComeToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		loading, r := startReaders(t.Context(), endless{}, &report.Result{Callers: 1, Readers: 2}, began)
		synctest.Wait()
		if err := loading.Err(); err != nil {
			t.Errorf("before the writers ended: got %v", err)
		}
		reading, err := r.end(0)
		if reading != nil || !errors.Is(err, errNotAtTheEnd) || time.Since(began) != readLimit {
			t.Errorf("got %+v, %v after %v, want %v", reading, err, time.Since(began), errNotAtTheEnd)
		}
	})
}

// A call that failed may have stored its event or not: it is not missed, and may be seen.
func TestReadersAndCallsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &failingRow{followedRow: newFollowedRow()}
		plan := Plan{Warmup: 10 * time.Millisecond, Window: 100 * time.Millisecond, Workspaces: 5}
		r := plan.Measure(t.Context(), Spec{Name: "failing", Callers: 2, Readers: 1, New: func(Settings) Row { return f }}, t.TempDir())
		if r.Failed != "" || r.Reading == nil || r.Errors == 0 {
			t.Fatalf("got %+v", r)
		}
		if got := r.Reading.Readers[0]; got.Skipped != 0 || got.Seen != r.Acknowledged+r.Errors {
			t.Errorf("got %+v, want %d and %d seen", got, r.Acknowledged, r.Errors)
		}
	})
}

// failingRow stores what it says that it has not, now and then.
type failingRow struct{ *followedRow }

func (f *failingRow) Do(ctx context.Context, caller int) error {
	if err := f.followedRow.Do(ctx, caller); err != nil {
		return err
	}
	f.log.Lock()
	defer f.log.Unlock()
	if f.made[caller]%10 == 0 {
		return errors.New("the answer is lost")
	}
	return nil
}
