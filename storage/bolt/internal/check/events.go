package check

import (
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/fetch"
	"github.com/partita-go/partita/storage/verify"
)

// EventsAt returns the LSNs of the events that faults are in, of a log from its beginning on.
func EventsAt(log iter.Seq2[fetch.LoggedEvent, error], faults []verify.Fault) (all []uint64, err error) {
	type place struct {
		partition messages.PartitionID
		offset    messages.PLogOffset
	}
	wanted := make(map[place]bool)
	for _, f := range faults {
		if f.PLogOffset != 0 {
			wanted[place{f.Partition, f.PLogOffset}] = true
		}
	}
	for e, err := range log {
		if err != nil {
			return all, err
		}
		if wanted[place{e.Partition, e.PLogOffset}] {
			all = append(all, uint64(e.LSN))
		}
	}
	return all, nil
}
