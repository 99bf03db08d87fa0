package bolt

import (
	"testing"

	"github.com/partita-go/partita/messages"
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
type crashingReplicas struct{ of *replicaFactory }

// owner is a store without its subscriptions, which are in the directory of one node.
type owner struct {
	storage.Store
	storage.Submitter
}

func ownerOf(s storage.Store) storage.Store { return owner{Store: s, Submitter: s.(*Store)} }

func (f crashingReplicas) Open(t testing.TB, d messages.Descriptor) storage.Store {
	return ownerOf(f.of.Open(t, d))
}

func (f crashingReplicas) OpenLimited(t testing.TB, d messages.Descriptor, events int) storage.Store {
	return ownerOf(f.of.OpenLimited(t, d, events))
}

func (f crashingReplicas) Reopen(t testing.TB, s storage.Store) storage.Store {
	return ownerOf(f.of.Reopen(t, s.(owner).Store))
}

func (f crashingReplicas) Crash(t testing.TB, s storage.Store) storage.Store {
	was := s.(owner).Store.(*Store)
	r := f.of.replicasOf(was)
	return ownerOf(f.of.note(r.crash(t, was), r))
}
