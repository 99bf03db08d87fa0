package raftlog

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/storage/replog"
)

// killing is three processes, one of which is killed again and again.
type killing struct {
	*testing.T
	dir       string
	processes map[replog.NodeID]*process
	addresses map[replog.NodeID]string
	// tried counts the entries; there are those that were acknowledged, doubtful those whose answer is unknown.
	tried           int
	there, doubtful []string
}

func (k *killing) start(id replog.NodeID) {
	p := startProcess(k.T, filepath.Join(k.dir, string(id)))
	k.processes[id] = p
	at, ok := p.hear(k.T, "at ")
	if !ok {
		k.Fatalf("node %s has ended", id)
	}
	k.addresses[id] = at
	var all []string
	for id, at := range k.addresses {
		all = append(all, fmt.Sprintf("%s=%s", id, at))
	}
	if len(all) == len(nodes) {
		for _, p := range k.processes {
			p.say("peers %s", strings.Join(all, " "))
		}
	}
}

// try writes an entry with one node, and says whether it is there.
func (k *killing) try(p *process, meanwhile func()) bool {
	k.tried++
	body := fmt.Sprintf("e%d", k.tried)
	p.say("append %s", body)
	meanwhile()
	outcome, ok := p.hear(k.T, "done "+body+" ")
	switch {
	case ok && outcome == "there":
		k.there = append(k.there, body)
		return true
	case !ok || outcome == "unknown":
		k.doubtful = append(k.doubtful, body)
	}
	return false
}

// write writes an entry with whichever node leads, and returns that.
func (k *killing) write(first replog.NodeID) replog.NodeID {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		for _, id := range append([]replog.NodeID{first}, nodes...) {
			if p := k.processes[id]; p != nil && k.try(p, func() {}) {
				return id
			}
		}
		// Somebody is being elected.
		<-time.After(5 * time.Millisecond)
	}
	k.Fatal("nobody takes an entry")
	return ""
}

// TestKilledLeaders kills whoever leads, with an entry under way. No acknowledged entry may be lost or doubled.
func TestKilledLeaders(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds a kill")
	}
	const kills, writes = 4, 50
	k := &killing{
		T: t, dir: t.TempDir(), processes: make(map[replog.NodeID]*process), addresses: make(map[replog.NodeID]string),
	}
	t.Cleanup(func() {
		for _, p := range k.processes {
			p.kill()
		}
	})
	for _, id := range nodes {
		o := Options{Dir: filepath.Join(k.dir, string(id)), Node: id, Shard: testShard, segmentSize: 1 << 20}
		if err := Create(o, nodes); err != nil {
			t.Fatal(err)
		}
		k.start(id)
	}
	leader := k.write(nodes[0])
	var pauses []time.Duration
	for range kills {
		for range writes {
			leader = k.write(leader)
		}
		p := k.processes[leader]
		delete(k.processes, leader)
		began := time.Now()
		k.try(p, p.kill)
		next := k.write(nodes[0])
		pauses = append(pauses, time.Since(began).Round(time.Millisecond))
		k.start(leader)
		leader = next
	}
	for range writes {
		leader = k.write(leader)
	}
	k.check()
	slices.Sort(pauses)
	t.Logf("kills=%d acknowledged=%d doubtful=%d lost=0 pauses=%v", kills, len(k.there), len(k.doubtful), pauses)
}

// check compares what the nodes have with what was acknowledged, as soon as all have as much.
func (k *killing) check() {
	var all [][]string
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		all = all[:0]
		for _, id := range nodes {
			p := k.processes[id]
			p.say("dump")
			dump, ok := p.hear(k.T, "dump ")
			if !ok {
				k.Fatalf("node %s has ended", id)
			}
			all = append(all, strings.Fields(dump))
		}
		if slices.Equal(all[0], all[1]) && slices.Equal(all[1], all[2]) {
			break
		}
		if time.Now().After(end) {
			k.Fatalf("the nodes differ: they have %d, %d and %d entries", len(all[0]), len(all[1]), len(all[2]))
		}
	}
	times := make(map[string]int)
	for _, body := range all[0] {
		times[body]++
	}
	for _, body := range k.there {
		if times[body] != 1 {
			k.Errorf("%s was acknowledged, and is there %d times", body, times[body])
		}
		delete(times, body)
	}
	for _, body := range k.doubtful {
		if times[body] > 1 {
			k.Errorf("%s is there %d times", body, times[body])
		}
		delete(times, body)
	}
	for body := range times {
		k.Errorf("%s was refused, and is there", body)
	}
}
