package partition_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// After a restore another event has the offset of one that is lost, and not its id.
func TestDeliveryIDAfterRestore(t *testing.T) {
	base := t.TempDir()
	h, holds := subscribingHouse(t)
	run := func(name, backup string) (id partition.DedupID) {
		s, err := bolt.Open(t.Context(), filepath.Join(base, name), descriptor, bolt.Options{Create: true, MmapSize: 1 << 20})
		noError(t, err)
		if backup != "" {
			_, err := s.Backup(t.Context(), filepath.Join(base, backup), bolt.CopyOptions{})
			noError(t, err)
		}
		d := openDesk(h, holds, s)
		got := make(chan partition.DeliveredEvent, 1)
		config := quick("billing", newConsumer())
		config.Handler = func(_ context.Context, delivery partition.Delivery) error {
			got <- delivery.Events[0]
			return nil
		}
		d.subscribe(config)
		d.write(1)
		e := soon(h, "the event", got)
		equal(t, uint64(1), e.Offset)
		noError(t, d.undeploy())
		noError(t, s.Close(context.Background()))
		return e.DedupID
	}
	before := run("store", "backup")
	_, err := bolt.Restore(t.Context(), filepath.Join(base, "backup"), filepath.Join(base, "restored"), bolt.CopyOptions{})
	noError(t, err)
	isTrue(t, before != run("restored", ""), "both have id %v", before)
}
