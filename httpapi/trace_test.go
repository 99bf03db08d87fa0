package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/storage/storagetest"
)

// steadyClock shows what it is set to.
type steadyClock struct{ now atomic.Int64 }

func (c *steadyClock) Now() time.Time { return time.Unix(c.now.Load(), 0) }

// AfterFunc implements [ids.Clock]. Nobody waits for the next second.
func (*steadyClock) AfterFunc(time.Duration, func()) ids.Timer { return idleTimer{} }

type idleTimer struct{}

func (idleTimer) Stop() bool { return true }

// newTracedRig returns a rig whose application gives trace ids, as node 7.
func newTracedRig(t *testing.T, o Options) *rig {
	t.Helper()
	clock := new(steadyClock)
	generator := ids.NewTraceGenerator(7, ids.TraceOptions{Clock: clock})
	clock.now.Store(1)
	return newRigOver(t, o, partitiontest.Options{Runtime: partition.Options{Traces: generator}})
}

// isOf checks the trace of an answer, and of the event or the problem that it is.
func (a answer) isOf(trace string) answer {
	a.t.Helper()
	var body struct{ Trace string }
	a.decode(&body)
	if got := a.header.Get(headerTrace); got != trace || body.Trace != trace && a.status != http.StatusCreated {
		a.t.Errorf("%s: got trace %q, and %q in %s, want %q", a.what, got, body.Trace, a.body, trace)
	}
	return a
}

// TestTrace: a request is of the trace that its headers name, its event and its problem too; without such headers of a new
// one.
func TestTrace(t *testing.T) {
	r := newTracedRig(t, Options{})
	const own, parent = "0123456789abcdef", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct {
		name, want string
		headers    []string
	}{
		{"own", own, []string{headerTrace, own}},
		{"W3C", "0448eb211c80319c", []string{headerParent, parent}},
		{"both", own, []string{headerTrace, own, headerParent, parent}},
		{"W3C, a later version", "0448eb211c80319c", []string{headerParent, "42" + parent[2:] + "-more"}},
		{"W3C, no id of ours", "0448eb211c803001", []string{headerParent, "00-0af7651916cd43dd8448eb211c803000-b7ad6b7169203331-01"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := r.post(big, `{"kind": 1, "body": 1}`, tt.headers...).has(http.StatusCreated).isOf(tt.want)
			r.get(a.header.Get("Location"), headerTrace, tt.want).has(http.StatusOK).isOf(tt.want)
			r.post(big, `{"kind": 1, "boody": 1}`, tt.headers...).problem(invalidEvent, "boody").isOf(tt.want)
		})
	}
	r.post(big, `{"kind": 1}`, headerTrace, "0123").problem(malformed, headerTrace)
	r.post(big, `{"kind": 1}`, headerTrace, own, headerTrace, own).problem(malformed, headerTrace)
	for _, none := range []string{
		"", parent + "-more", "ff" + parent[2:], "00-" + parent, "0-" + parent[3:], "0G" + parent[2:],
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
	} {
		a := r.post(big, `{"kind": 1}`, headerParent, none).has(http.StatusCreated)
		if id, err := ids.ParseTraceID(a.header.Get(headerTrace)); err != nil || id.Node() != 7 {
			t.Errorf("%q: got trace %q, want a new one", none, a.header.Get(headerTrace))
		}
	}
}

// TestTraceInLogLines: the line about a problem says of which trace the request is, if it is of one.
func TestTraceInLogLines(t *testing.T) {
	const own = "0123456789abcdef"
	for want, headers := range map[string][]string{own: {headerTrace, own}, "": nil} {
		core, lines := observer.New(zap.DebugLevel)
		r := newRig(t, Options{Logger: zap.New(core)})
		r.store.Plant(storagetest.Fault{Op: storagetest.OpWLog, Do: storagetest.Fail(errors.New("the cause"))})
		r.get("/v1/workspaces/42/log", headers...).problem(internal, "")
		trace, there := lines.All()[0].ContextMap()["trace"]
		if there != (want != "") || there && trace != want {
			t.Errorf("got trace %v, want %q", trace, want)
		}
	}
}

// TestNoTraces: a server that gives no traces takes those that requests bring along.
func TestNoTraces(t *testing.T) {
	r := newRig(t, Options{})
	const own, parent = "0123456789abcdef", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	r.post(big, `{"kind": 1}`).has(http.StatusCreated).isOf("")
	r.post(big, `{"kind": 1}`, headerTrace, own).has(http.StatusCreated).isOf(own)
	r.post(big, `{"kind": 1}`, headerParent, parent).has(http.StatusCreated).isOf("0448eb211c80319c")
	r.post(big, `{"kind": 1}`, headerTrace, "0123").problem(malformed, headerTrace)
	var got []ids.TraceID
	for e, err := range r.app.Reader().WLog(t.Context(), big, 1) {
		check(t, err)
		got = append(got, e.Trace)
	}
	if want := []ids.TraceID{0, 0x0123456789abcdef, 0x0448eb211c80319c}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
