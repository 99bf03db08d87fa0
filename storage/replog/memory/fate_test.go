package memory_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
)

// bodies is a replica that remembers bodies.
type bodies struct{ all []string }

func (b *bodies) Apply(_ replog.Position, body []byte) error {
	b.all = append(b.all, string(body))
	return nil
}

// inBubble runs a test with three nodes that run, the first one of which leads.
func inBubble(t *testing.T, test func(t *testing.T, c *memory.Cluster, logs []*memory.Log, replicas []*bodies)) {
	synctest.Test(t, func(t *testing.T) {
		c := memory.NewCluster(1, nodes...)
		var logs []*memory.Log
		var replicas []*bodies
		for _, id := range nodes {
			l, b := c.Log(id), &bodies{}
			if err := l.Start(replog.Position{}, b); err != nil {
				t.Fatal(err)
			}
			logs, replicas = append(logs, l), append(replicas, b)
		}
		lead(t, c, 0)
		test(t, c, logs, replicas)
		for _, l := range logs {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func lead(t *testing.T, c *memory.Cluster, node int) {
	t.Helper()
	if err := c.Lead(nodes[node]); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func mustHave(t *testing.T, replicas []*bodies, want ...string) {
	t.Helper()
	synctest.Wait()
	for i, b := range replicas {
		if len(b.all) != len(want) {
			t.Errorf("node %d: got %q, want %q", i, b.all, want)
			continue
		}
		for j := range want {
			if b.all[j] != want[j] {
				t.Errorf("node %d: got %q, want %q", i, b.all, want)
			}
		}
	}
}

// TestLateEntryIsVoid lets an entry arrive when another leader has written behind the same head.
func TestLateEntryIsVoid(t *testing.T) {
	inBubble(t, func(t *testing.T, c *memory.Cluster, logs []*memory.Log, replicas []*bodies) {
		c.Doom(nodes[0], memory.Late)
		if err := logs[0].Append(t.Context(), 0, []byte("late")); !errors.Is(err, messages.ErrOutcomeUnknown) {
			t.Fatalf("got %v", err)
		}
		lead(t, c, 1)
		if err := logs[1].Append(t.Context(), 0, []byte("first")); err != nil {
			t.Fatal(err)
		}
		c.Release()
		mustHave(t, replicas, "first")
	})
}

// TestLateEntryCounts lets it arrive before anybody has written.
func TestLateEntryCounts(t *testing.T) {
	inBubble(t, func(t *testing.T, c *memory.Cluster, logs []*memory.Log, replicas []*bodies) {
		c.Doom(nodes[0], memory.Late)
		_ = logs[0].Append(t.Context(), 0, []byte("late"))
		lead(t, c, 1)
		c.Release()
		synctest.Wait()
		if err := logs[1].Append(t.Context(), 0, []byte("second")); !errors.Is(err, replog.ErrMoved) {
			t.Fatalf("got %v", err)
		}
		mustHave(t, replicas, "late")
	})
}

// TestAnswerAfterAnotherHasBegun lets the answer of an entry wait until another leader has written behind it.
func TestAnswerAfterAnotherHasBegun(t *testing.T) {
	inBubble(t, func(t *testing.T, c *memory.Cluster, logs []*memory.Log, replicas []*bodies) {
		c.Doom(nodes[0], memory.Delayed)
		answer := make(chan error, 1)
		go func() { answer <- logs[0].Append(t.Context(), 0, []byte("delayed")) }()
		synctest.Wait()
		lead(t, c, 1)
		if err := logs[1].Append(t.Context(), 1, []byte("next")); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-answer:
			t.Fatalf("answered: %v", err)
		default:
		}
		c.Release()
		if err := <-answer; err != nil {
			t.Fatalf("got %v", err)
		}
		mustHave(t, replicas, "delayed", "next")
	})
}

// TestHeldNodeDoesNotBegin lets a node lead that does not apply what is there.
func TestHeldNodeDoesNotBegin(t *testing.T) {
	inBubble(t, func(t *testing.T, c *memory.Cluster, logs []*memory.Log, replicas []*bodies) {
		c.Hold(nodes[1])
		if err := logs[0].Append(t.Context(), 0, []byte("first")); err != nil {
			t.Fatal(err)
		}
		lead(t, c, 1)
		if now, _ := logs[1].Leadership(); now.Term != 0 || now.Leader != nodes[1] {
			t.Fatalf("got %+v", now)
		}
		c.Resume(nodes[1])
		synctest.Wait()
		if now, _ := logs[1].Leadership(); now.Term == 0 {
			t.Fatalf("got %+v", now)
		}
		mustHave(t, replicas, "first")
	})
}

// TestMinorityDoesNotLead lets too few nodes run.
func TestMinorityDoesNotLead(t *testing.T) {
	inBubble(t, func(t *testing.T, c *memory.Cluster, logs []*memory.Log, replicas []*bodies) {
		c.Cut(nodes[1])
		c.Cut(nodes[2])
		if err := logs[0].Append(t.Context(), 0, []byte("alone")); !errors.Is(err, messages.ErrOutcomeUnknown) {
			t.Fatalf("got %v", err)
		}
		for _, id := range nodes {
			if err := c.Lead(id); err == nil {
				t.Errorf("node %s leads without a majority", id)
			}
		}
		mustHave(t, replicas)
	})
}
