package raftlog

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
)

// stores are those of a cluster's nodes.
type stores struct {
	*rig
	of    map[replog.NodeID]*bolt.Store
	owner replog.NodeID
	epoch messages.Epoch
	next  messages.PLogOffset
}

const storeKind messages.WSKind = 1

func storeDescriptor() messages.Descriptor {
	return messages.Descriptor{Application: "test", Partitions: 1, Kinds: []messages.Kind{{ID: storeKind, Name: "tenant"}}}
}

func (s *stores) dir(id replog.NodeID) string { return filepath.Join(s.c.dir, string(id)+" store") }

// open opens the store of a node, which is stopped at the end.
func (s *stores) open(id replog.NodeID) error {
	st, err := bolt.Open(s.ctx, s.dir(id), storeDescriptor(), bolt.Options{Create: true, MmapSize: 1 << 20, Log: s.c.Log(s, id)})
	if err == nil {
		s.of[id] = st
	}
	return err
}

func (s *stores) close(id replog.NodeID) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), patience)
	defer cancel()
	if err := s.of[id].Close(ctx); err != nil {
		s.Errorf("node %s: close: %v", id, err)
	}
	delete(s.of, id)
}

// append appends so many events, which are large, through the owner.
func (s *stores) append(count int) {
	s.Helper()
	for range count {
		s.appendOne()
	}
}

// appendOne appends an event, once. On a busy machine the owner may lose the lead: it goes on as one that has it anew.
func (s *stores) appendOne() {
	s.Helper()
	for goal := s.next + 1; s.next < goal; {
		s.next++
		err := s.of[s.owner].Append(s.ctx, storage.Batch{Epoch: s.epoch, Events: []messages.Event{{
			Kind: messages.EventBusiness, Epoch: s.epoch, PLogOffset: s.next, Workspace: 1, WorkspaceKind: storeKind,
			WLogOffset: messages.WLogOffset(s.next), RegisteredAt: messages.Timestamp(s.next),
			Body: []byte(strings.Repeat("large", 8<<10)),
		}}})
		if err == nil {
			continue
		}
		s.Logf("append: %v", err)
		s.takeOver()
	}
}

// takeOver lets the owner lead, and learns where the log ends.
func (s *stores) takeOver() {
	s.Helper()
	err := s.asOwner(s.owner, func() error {
		reg, err := s.of[s.owner].TakeEpoch(s.ctx, 0)
		s.epoch, s.next = reg.Epoch, reg.Last
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
}

// seed makes the replica of a node of another one's.
func (s *stores) seed(id, from replog.NodeID) replog.Position {
	s.Helper()
	var b bytes.Buffer
	err := s.of[from].WriteSeed(s.ctx, &b, bolt.CopyOptions{Progress: func(bolt.CopyProgress) { s.append(1) }})
	if err != nil {
		s.Fatal(err)
	}
	copied, err := bolt.ReadSeed(s.ctx, &b, s.dir(id), bolt.CopyOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return copied.Position
}

func (s *stores) events(id replog.NodeID) (all []messages.Event) {
	for e, err := range s.of[id].Log(replog.Local(s.ctx), 1) {
		if err != nil {
			s.Fatalf("node %s: %v", id, err)
		}
		all = append(all, e)
	}
	return all
}

// TestStoresAreSeeded lets a node that is too far behind be made anew, and a new one be added, while appends go on.
func TestStoresAreSeeded(t *testing.T) {
	t.Parallel()
	c := newCluster(t, newSockets(t, false), func(_ replog.NodeID, o *Options) { o.Keep = 64 })
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	s := &stores{rig: &rig{TB: t, ctx: ctx, c: c}, of: make(map[replog.NodeID]*bolt.Store)}
	t.Cleanup(func() {
		for id := range s.of {
			s.close(id)
		}
	})
	n, behind, added := nodes[0], nodes[2], replog.NodeID("n4")
	for _, id := range nodes {
		if err := s.open(id); err != nil {
			t.Fatal(err)
		}
	}
	s.lead(n)
	s.close(behind)
	s.owner = n
	s.takeOver()
	s.append(200) // several segments of the log more than it keeps
	if err := answerOf(s, s.log(n).raft.Snapshot); err != nil {
		t.Fatal(err)
	}
	err := s.open(behind)
	if err == nil {
		l := s.await(behind, "it is too far behind", func(l replog.Leadership) bool { return l.Stopped != nil })
		err = l.Stopped
		s.close(behind)
	}
	if !errors.Is(err, replog.ErrBehind) {
		t.Fatalf("got %v, want ErrBehind", err)
	}

	moved := s.dir(behind) + " away"
	if err := os.Rename(s.dir(behind), moved); err != nil {
		t.Fatal(err)
	}
	if err := Seed(c.options(behind), s.seed(behind, nodes[1])); err != nil {
		t.Fatal(err)
	}
	if err := s.open(behind); err != nil {
		t.Fatal(err)
	}
	if err := Join(c.options(added), s.seed(added, n)); err != nil {
		t.Fatal(err)
	}
	if err := s.open(added); err != nil {
		t.Fatal(err)
	}
	s.append(1)
	if err := s.add(n, added); err != nil {
		t.Fatal(err)
	}
	s.append(3)
	want := s.events(n)
	for _, id := range []replog.NodeID{nodes[1], behind, added} {
		for last := uint64(0); last < uint64(len(want)); {
			if last, err = s.of[id].AwaitAny(ctx, last); err != nil {
				t.Fatalf("node %s: %v", id, err)
			}
		}
		if got := s.events(id); !reflect.DeepEqual(got, want) {
			t.Errorf("node %s has %d events, want %d, or they differ", id, len(got), len(want))
		}
	}
	s.owner = added
	s.lead(added)
	s.takeOver()
}
