package raftlog

import (
	"errors"
	"slices"
	"testing"

	"github.com/partita-go/partita/storage/replog"
)

// memory is a disk of peers.
type memory map[string][]byte

func (m memory) Get(key []byte) ([]byte, error) { return m[string(key)], nil }

func (m memory) Set(key, value []byte) error {
	m[string(key)] = value
	return nil
}

// TestRequestsOfNodesThatHaveMetInOneLog: nodes with several logs meet in some of them. Requests go by any of these.
func TestRequestsOfNodesThatHaveMetInOneLog(t *testing.T) {
	t.Parallel()
	const second = testShard + 1
	type shards []replog.Shard
	for name, test := range map[string]struct {
		// a and b are which logs are open there, met is in which ones they have met, and otherwise in which ones they have
		// met other nodes of these names.
		a, b, met, otherwise shards
		refused              bool
	}{
		"nowhere":                      {a: shards{testShard, second}, b: shards{testShard, second}},
		"in the first":                 {a: shards{testShard, second}, b: shards{testShard, second}, met: shards{testShard}},
		"in the second":                {a: shards{testShard, second}, b: shards{testShard, second}, met: shards{second}},
		"in one that is closed here":   {a: shards{second}, b: shards{testShard, second}, met: shards{testShard}},
		"in one that is closed there":  {a: shards{testShard, second}, b: shards{second}, met: shards{testShard}},
		"in one that is open":          {a: shards{testShard, second}, b: shards{second}, met: shards{testShard, second}},
		"with no log":                  {a: shards{}, b: shards{second}, met: shards{second}},
		"in the second, others before": {shards{testShard, second}, shards{testShard, second}, shards{second}, shards{testShard}, false},
		"others":                       {shards{testShard, second}, shards{testShard, second}, nil, shards{testShard}, true},
		"others in both":               {shards{testShard, second}, shards{testShard, second}, nil, shards{testShard, second}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := newPorts(t, false)
			for _, shard := range []replog.Shard{testShard, second} {
				known := map[*Port]*peers{
					a: {own: life{'a', byte(shard)}, disk: memory{}}, b: {own: life{'b', byte(shard)}, disk: memory{}},
				}
				if slices.Contains(test.met, shard) {
					meet(t, known[a], known[b], known[a].own, known[b].own)
				}
				if slices.Contains(test.otherwise, shard) {
					meet(t, known[a], known[b], life{'x'}, life{'y'})
				}
				for p, on := range map[*Port]shards{a: test.a, b: test.b} {
					if !slices.Contains(on, shard) {
						continue
					}
					if _, err := p.open(shard, known[p]); err != nil {
						t.Fatal(err)
					}
				}
			}
			from, to := requests(t, a), requests(t, b)
			for _, way := range []struct {
				from *Requests
				to   replog.NodeID
			}{{from, nodes[1]}, {to, nodes[0]}} {
				if _, err := way.from.Dial(t.Context(), way.to); errors.Is(err, errRefused) != test.refused || err != nil && !test.refused {
					t.Errorf("to %s: got %v, want a refusal: %t", way.to, err, test.refused)
				}
			}
		})
	}
}

// meet lets two nodes meet in a log, as what they are there.
func meet(t *testing.T, a, b *peers, ofA, ofB life) {
	sameA, errA := a.know(nodes[1], ofB)
	sameB, errB := b.know(nodes[0], ofA)
	if err := errors.Join(errA, errB); err != nil || !sameA || !sameB {
		t.Fatalf("got %v, %v, %v", sameA, sameB, err)
	}
}

// requests opens those of a node, and takes what comes.
func requests(t *testing.T, p *Port) *Requests {
	r, err := p.Requests()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			if _, err := r.Accept(); err != nil {
				return
			}
		}
	}()
	return r
}
