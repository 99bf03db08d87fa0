package partition

import (
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// ownedBy returns the partitions that a store has, in order of their ids.
func ownedBy(store storage.Reader, partitions uint32) []messages.PartitionID {
	if s, ok := store.(storage.Sharded); ok {
		return s.Owned()
	}
	all := make([]messages.PartitionID, partitions)
	for i := range all {
		all[i] = messages.PartitionID(i)
	}
	return all
}
