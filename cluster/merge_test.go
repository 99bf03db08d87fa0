package cluster

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/partita-go/partita/httpapi"
)

// TestMergedPages leaves out what may lie behind something that is not known yet.
func TestMergedPages(t *testing.T) {
	t.Parallel()
	page := func(more bool, all ...int) httpapi.Page[int] {
		p := httpapi.Page[int]{Results: all}
		if more {
			p.Next = new("?after=")
		}
		return p
	}
	for _, c := range []struct {
		pages []httpapi.Page[int]
		want  string
	}{
		{[]httpapi.Page[int]{page(false)}, "[] false"},
		{[]httpapi.Page[int]{page(false, 3, 5), page(false), page(false, 1, 4)}, "[1 3 4 5] false"},
		{[]httpapi.Page[int]{page(true, 3, 5), page(false, 4, 6)}, "[3 4 5] true"},
		{[]httpapi.Page[int]{page(true, 3, 5), page(true, 1), page(false, 2)}, "[1] true"},
	} {
		all, more := merge(c.pages, cmp.Compare[int])
		if got := fmt.Sprint(all, more); got != c.want {
			t.Errorf("%v: got %s, want %s", c.pages, got, c.want)
		}
	}
}

// TestJoinedSubscription tells what is worst.
func TestJoinedSubscription(t *testing.T) {
	t.Parallel()
	parts := []httpapi.Subscription{
		{Name: "mail", State: "running", LagEvents: 1, LagSeconds: 3, Parked: 1, Delivered: 5, Lanes: []httpapi.Lane{{Partition: 0}, {Partition: 2}}},
		{Name: "mail", State: "stopped", Stopped: "event", LagEvents: 2, LagSeconds: 1, Parked: 2, Delivered: 7, Lanes: []httpapi.Lane{{Partition: 1}}},
		{Name: "mail", State: "not-running", Error: "no", Lanes: []httpapi.Lane{}},
	}
	got := joined(parts)
	if got.State != "stopped" || got.Stopped != "event" || got.Error != "no" || got.LagEvents != 3 || got.LagSeconds != 3 || got.Parked != 3 || got.Delivered != 12 {
		t.Errorf("got %+v", got)
	}
	if len(got.Lanes) != 3 || got.Lanes[1].Partition != 1 {
		t.Errorf("got lanes %+v", got.Lanes)
	}
}

// TestPartlyDone tells that a change was made elsewhere, without changing what a problem says.
func TestPartlyDone(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	r.header.Set("Content-Length", "60")
	_, _ = r.Write([]byte(`{"detail":"it waits","offset":18446744073709551615}`))
	r.tellMore("else done")
	if got, want := r.body.String(), `{"detail":"it waits; else done","offset":18446744073709551615}`; got != want || r.header.Get("Content-Length") != "" {
		t.Errorf("got %s, %q, want %s", got, r.header, want)
	}
	r.body.Reset()
	_, _ = r.Write([]byte("no JSON"))
	if r.tellMore("else done"); r.body.String() != "no JSON" {
		t.Errorf("got %s", r.body.String())
	}
}
