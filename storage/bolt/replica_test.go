package bolt

import (
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestConformanceOfOneReplica: a replicated log of one node is as good as log.wal.
func TestConformanceOfOneReplica(t *testing.T) {
	storagetest.Run(t, newReplicaFactory(1))
}

// TestConformanceOfReplicas: of three nodes, the owner is cut off at each crash, and another one goes on.
func TestConformanceOfReplicas(t *testing.T) {
	storagetest.Run(t, crashingReplicas{newReplicaFactory(3)})
}

// crashingReplicas make stores whose owner crashes.
type crashingReplicas struct{ *replicaFactory }

func (f crashingReplicas) Crash(t testing.TB, s storage.Store) storage.Store {
	r := f.replicasOf(s)
	return f.note(r.crash(t, s.(*Store)), r)
}
