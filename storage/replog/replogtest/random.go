package replogtest

import (
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/partita-go/partita/messages"
)

// testRandom lets all nodes write as long as they lead, while leaders change and links are cut by seed.
func testRandom(r *rig) {
	const changes, writes = 12, 4
	random := rand.New(rand.NewPCG(1, 2))
	d, _ := r.cluster.(Doubter)
	for range changes {
		n := r.nodes[random.IntN(len(r.nodes))]
		r.elect(n)
		var group sync.WaitGroup
		for _, writer := range r.nodes {
			group.Go(func() {
				for range writes {
					if err := r.append(writer); errors.Is(err, messages.ErrOutcomeUnknown) {
						return
					}
				}
			})
		}
		cut := random.IntN(3) == 0
		switch {
		case cut:
			r.cluster.Cut(r, n.id)
		case d != nil:
			d.Doubt(r, n.id, random.IntN(2) == 0)
		}
		group.Wait()
		if cut {
			r.cluster.Heal(r, n.id)
		}
	}
	n := r.nodes[random.IntN(len(r.nodes))]
	r.elect(n)
	// A doubt that nobody has met yet.
	for errors.Is(r.append(n), messages.ErrOutcomeUnknown) {
		r.elect(n)
	}
}
