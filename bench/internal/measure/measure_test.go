package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/partita-go/partita/bench/internal/report"
	"github.com/partita-go/partita/bench/internal/usage"
)

// fakeRow appends one byte per event to a file, and takes a millisecond for it.
type fakeRow struct {
	setup, check, close error

	mu      sync.Mutex
	file    *os.File
	calls   uint64
	settled bool
	closed  atomic.Int32
}

func (f *fakeRow) Setup(_ context.Context, dir string) error {
	if f.setup != nil {
		return f.setup
	}
	var err error
	f.file, err = os.Create(filepath.Join(dir, "events"))
	return err
}

func (f *fakeRow) Do(ctx context.Context, _ int) error {
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	_, err := f.file.WriteString("e")
	return err
}

func (f *fakeRow) Check(_ context.Context, failed uint64) (string, error) {
	return fmt.Sprintf("%d events, %d failed", f.calls, failed), f.check
}

func (f *fakeRow) Sizes() ([]usage.Size, error) {
	size, err := usage.SizeOf(f.file.Name())
	return []usage.Size{size}, err
}

func (f *fakeRow) Note() string { return "a file" }

func (f *fakeRow) Settle(context.Context) error {
	<-time.After(time.Millisecond)
	f.settled = true
	return nil
}

func (f *fakeRow) Close(context.Context) error {
	f.closed.Add(1)
	if f.file == nil {
		return f.close
	}
	return errors.Join(f.close, f.file.Close())
}

// run measures a row by a clock that no other work on the machine can slow.
func run(t *testing.T, f *fakeRow) (r report.Result) {
	t.Helper()
	plan := Plan{Warmup: 10 * time.Millisecond, Window: 100 * time.Millisecond, Workspaces: 5}
	spec := Spec{Name: "fake", Callers: 2, New: func(s Settings) Row {
		if s != (Settings{Callers: 2, Workspaces: 5}) {
			t.Errorf("got %+v", s)
		}
		return f
	}}
	synctest.Test(t, func(t *testing.T) { r = plan.Measure(t.Context(), spec, t.TempDir()) })
	if n := f.closed.Load(); n != 1 {
		t.Errorf("closed %d times, want once", n)
	}
	return r
}

func TestMeasure(t *testing.T) {
	f := new(fakeRow)
	r := run(t, f)
	if err := r.Err(false); err != nil {
		t.Fatal(err)
	}
	if r.Window != 100*time.Millisecond || r.RoundsWanted != 0 || r.Drain <= 0 {
		t.Errorf("got a window of %v, %d rounds wanted, drained in %v", r.Window, r.RoundsWanted, r.Drain)
	}
	if r.Row != "fake" || r.Callers != 2 || r.Note != "a file" || r.Check != fmt.Sprintf("%d events, 0 failed", f.calls) {
		t.Errorf("got %+v", r)
	}
	if r.Acknowledged != f.calls || r.Events == 0 || r.Events > r.Acknowledged || r.P50 <= 0 {
		t.Errorf("got %d acknowledged, %d of them in the window, p50 %v, want %d", r.Acknowledged, r.Events, r.P50, f.calls)
	}
	if len(r.Files) != 1 || r.Files[0].Bytes != int64(f.calls) || r.Written <= 0 || r.WrittenFrom == "" || r.Of != report.OfProgram {
		t.Errorf("got files %v, %d bytes written (%s, of %s)", r.Files, r.Written, r.WrittenFrom, r.Of)
	}
	if !f.settled {
		t.Error("not settled")
	}
}

func TestRowsThatFail(t *testing.T) {
	for name, tt := range map[string]struct {
		row         *fakeRow
		unavailable bool
		want        string
	}{
		"setup":   {row: &fakeRow{setup: errors.New("no disk")}, want: "setup: no disk"},
		"missing": {row: &fakeRow{setup: fmt.Errorf("initdb: %w", ErrUnavailable)}, unavailable: true, want: "setup: initdb: not available"},
		"check":   {row: &fakeRow{check: errors.New("number 3 is missing")}, want: "check: number 3 is missing"},
		"close":   {row: &fakeRow{close: errors.New("stuck")}, want: "close: stuck"},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, tt.row)
			got := r.Failed
			if tt.unavailable {
				got = r.Unavailable
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got failed %q, unavailable %q, want %q", r.Failed, r.Unavailable, tt.want)
			}
		})
	}
}

func TestServersProcessCounts(t *testing.T) {
	if pid, of := processOf(served{new(fakeRow)}); pid != 7 || of != report.OfServer {
		t.Errorf("got %d, %s, want 7, %s", pid, of, report.OfServer)
	}
}

type served struct{ *fakeRow }

func (served) PID() int { return 7 }
