package raftlog

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
)

// deaf is a transport to nodes that answer if they are there.
type deaf struct {
	raft.Transport
	there bool
	// sent takes what is sent.
	sent chan *raft.AppendEntriesRequest
}

var errDeaf = errors.New("nobody is there")

func (d *deaf) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) error {
	there := d.there // whoever is told may change it
	d.sent <- args
	if !there {
		return errDeaf
	}
	return nil
}

func (d *deaf) Close() error { return nil }

// Entries for a node that has not answered wait for its next answer to a heartbeat, not for raft's next try, which comes up to
// 10 s later.
func TestEntriesWaitForANodeThatIsBack(t *testing.T) { synctest.Test(t, testEntriesWait) }

func testEntriesWait(t *testing.T) {
	d := &deaf{sent: make(chan *raft.AppendEntriesRequest, 2)}
	tr := &transport{Transport: d, closed: make(chan struct{}), follows: func(raft.ServerID, uint64) bool { return true }}
	send := func(args *raft.AppendEntriesRequest) error {
		return tr.AppendEntries("b", "b", args, &raft.AppendEntriesResponse{})
	}
	entries := func() *raft.AppendEntriesRequest {
		return &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 1, PrevLogTerm: 1, Entries: []*raft.Log{{Index: 2}}}
	}
	heartbeat := &raft.AppendEntriesRequest{Term: 1}
	if err := send(entries()); !errors.Is(err, errDeaf) {
		t.Fatalf("got %v", err)
	}
	<-d.sent
	answers := make(chan error, 1)
	late := entries()
	go func() { answers <- send(late) }()
	synctest.Wait()
	if err := send(heartbeat); !errors.Is(err, errDeaf) {
		t.Fatalf("heartbeat: got %v", err)
	}
	if got := <-d.sent; got != heartbeat {
		t.Fatalf("got %v sent while nobody was there", got)
	}
	d.there = true
	if err := send(heartbeat); err != nil {
		t.Fatalf("heartbeat: got %v", err)
	}
	if got := <-d.sent; got != heartbeat {
		t.Fatalf("got %v sent before a heartbeat was answered", got)
	}
	if got := <-d.sent; got != late {
		t.Errorf("got %v sent", got)
	}
	if err := <-answers; err != nil {
		t.Errorf("got %v", err)
	}
	// One that answers is not waited for.
	if err := send(entries()); err != nil {
		t.Errorf("got %v", err)
	}
	<-d.sent
}

// What waits ends when the log is closed.
func TestWaitingEntriesEnd(t *testing.T) { synctest.Test(t, testWaitingEntries) }

func testWaitingEntries(t *testing.T) {
	d := &deaf{sent: make(chan *raft.AppendEntriesRequest, 2)}
	tr := &transport{Transport: d, closed: make(chan struct{}), follows: func(raft.ServerID, uint64) bool { return true }}
	send := func() error {
		return tr.AppendEntries("b", "b", &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 1}, &raft.AppendEntriesResponse{})
	}
	_ = send()
	answers := make(chan error, 1)
	go func() { answers <- send() }()
	synctest.Wait()
	if len(answers) > 0 || len(d.sent) != 1 {
		t.Fatal("it has not waited")
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-answers; !errors.Is(err, errDeaf) {
		t.Errorf("got %v", err)
	}
	if err := tr.Close(); err != nil {
		t.Errorf("once more: %v", err)
	}
}
