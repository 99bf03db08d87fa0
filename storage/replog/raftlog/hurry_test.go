package raftlog

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/storage/replog"
)

// TestSilentLeader: those who follow see it as soon as it can be, and have their patience back under the next one.
func TestSilentLeader(t *testing.T) {
	t.Parallel()
	core, said := observer.New(zap.InfoLevel)
	r := newRig(t, newCluster(t, newInProcess(), func(_ replog.NodeID, o *Options) { o.Logger = zap.New(core) }))
	r.lead(nodes[0])
	r.must(nodes[0], 1)
	r.c.Cut(r, nodes[0])
	r.await(nodes[1], "another node leads", func(l replog.Leadership) bool { return l.Leader != "" && l.Leader != nodes[0] })
	if said.FilterMessage("the leader is silent").Len() == 0 {
		t.Error("nobody has looked for it")
	}
	r.until(func() bool { // on a busy machine that may be yet another one by then
		return slices.ContainsFunc(nodes[1:], func(id replog.NodeID) bool {
			now, _ := r.log(id).Leadership()
			return now.Term != 0
		})
	}, "no other node leads")
	for _, id := range nodes[1:] {
		for r.log(id).raft.ReloadableConfig().HeartbeatTimeout != failover {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-r.ctx.Done():
				t.Fatalf("node %s hurries on", id)
			}
		}
	}
}

// TestTurns: those who follow do not ask at the same moment.
func TestTurns(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), nil))
	for _, leader := range nodes[1:] {
		r.lead(leader)
		ranks := make(map[int]bool)
		for _, id := range nodes {
			if id != leader {
				ranks[r.log(id).rank(raft.ServerID(leader))] = true
			}
		}
		if !ranks[0] || !ranks[1] {
			t.Errorf("node %s leads: got ranks %v, want 0 and 1", leader, ranks)
		}
	}
}

// TestOldStreams: a question that a stream has lost which had ended before is asked again, any other one is not.
func TestOldStreams(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		lost int
		want int
	}{
		{io.EOF, 3, 4},
		{fmt.Errorf("write: %w", syscall.EPIPE), 1, 2},
		{io.EOF, 100, 4},
		{errRefused, 1, 1},
		{nil, 0, 1},
	} {
		asked := 0
		err := again(func() error {
			if asked++; asked <= test.lost {
				return test.err
			}
			return nil
		})
		if asked != test.want || (err != nil) != (test.lost >= test.want) || err != nil && !errors.Is(err, test.err) {
			t.Errorf("%v, %d times: got %v after %d tries, want %d", test.err, test.lost, err, asked, test.want)
		}
	}
}

// gone is a transport of streams whose other ends are closed.
type gone struct {
	raft.Transport
	asked int
}

func (g *gone) TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error {
	g.asked++
	return io.EOF
}

// TestNobodyIsToldTwiceToLead: a node may have heard it, though its answer is lost. It may lead then.
func TestNobodyIsToldTwiceToLead(t *testing.T) {
	t.Parallel()
	g := &gone{}
	tr := &transport{Transport: g}
	if err := tr.TimeoutNow("b", "b", nil, nil); !errors.Is(err, io.EOF) || g.asked != 1 {
		t.Errorf("got %v, asked %d times, want once", err, g.asked)
	}
}
