package raftlog

import (
	"testing"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// TestCacheCountsBytes stores entries of a megabyte, which are read again whether they are in memory or not.
func TestCacheCountsBytes(t *testing.T) {
	t.Parallel()
	below := raft.NewInmemStore()
	c := &cache{backlog: newBacklog(), guard: &guard{LogStore: below, stable: below, fail: func(error) {}}}
	const count, size = 40, 1 << 20
	for i := range uint64(count) {
		e := &raft.Log{Index: 7 + i, Data: make([]byte, size)}
		e.Data[0] = byte(i)
		if err := c.StoreLog(e); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(c.entries); got != cachedBytes/size {
		t.Errorf("got %d entries in memory, want %d", got, cachedBytes/size)
	}
	for i := range uint64(count) {
		var e raft.Log
		if err := c.GetLog(7+i, &e); err != nil || e.Index != 7+i || e.Data[0] != byte(i) {
			t.Errorf("entry %d: got %d, %v", 7+i, e.Index, err)
		}
	}
	if err := c.DeleteRange(40, 46); err != nil {
		t.Fatal(err)
	}
	if err := c.GetLog(41, new(raft.Log)); err == nil {
		t.Error("an entry is there that was deleted")
	}
	if err := c.StoreLog(&raft.Log{Index: 40, Data: []byte{99}}); err != nil {
		t.Fatal(err)
	}
	var e raft.Log
	if err := c.GetLog(40, &e); err != nil || e.Data[0] != 99 {
		t.Errorf("got %v, %v, want the new entry", e.Data, err)
	}
}

// TestManySmallEntries: the cache counts entries, too.
func TestManySmallEntries(t *testing.T) {
	t.Parallel()
	below := raft.NewInmemStore()
	c := &cache{backlog: newBacklog(), guard: &guard{LogStore: below, stable: below, fail: func(error) {}}}
	for i := range uint64(1000) {
		if err := c.StoreLog(&raft.Log{Index: 1 + i, Data: []byte{1}}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(c.entries); got != cachedEntries {
		t.Errorf("got %d entries in memory, want %d", got, cachedEntries)
	}
}

// TestEntriesTravelTogether: as many as have so many bytes, or one.
func TestEntriesTravelTogether(t *testing.T) {
	t.Parallel()
	of := func(sizes ...int) (all []*raft.Log) {
		for _, size := range sizes {
			all = append(all, &raft.Log{Data: make([]byte, size)})
		}
		return all
	}
	for _, test := range []struct {
		sizes []int
		want  int
	}{
		{nil, 0}, {[]int{1, 1, 1}, 3}, {[]int{2 * maxAppendBytes, 1}, 1}, {[]int{1, maxAppendBytes, 1}, 1},
		{[]int{maxAppendBytes / 2, maxAppendBytes / 2, 1}, 2},
	} {
		if got := len(together(of(test.sizes...))); got != test.want {
			t.Errorf("%v: got %d, want %d", test.sizes, got, test.want)
		}
	}
}

// TestLargeEntriesCatchUp lets a node catch up with more than travels together.
func TestLargeEntriesCatchUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, newCluster(t, newInProcess(), func(_ replog.NodeID, o *Options) { o.segmentSize = 32 << 20 }))
	n, away := nodes[0], nodes[2]
	r.lead(n)
	r.stop(away)
	large := string(make([]byte, 3<<20))
	for range 6 {
		r.write(n, large)
	}
	if err := r.start(away, r.books[away]); err != nil {
		t.Fatal(err)
	}
	r.catchUp(away, n)
	r.sameBooks(n, away)
}
