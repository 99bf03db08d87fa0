package bolt

import (
	"errors"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// placeAt returns positions in logs that have come there, with the events on which they rest.
func (s *Store) placeAt(source *storage.SubscriptionSource, next map[messages.PartitionID]uint64) []subsdb.Placed {
	all := make([]subsdb.Placed, 0, len(next))
	for id, offset := range next {
		all = append(all, subsdb.Placed{Partition: id, Position: subsdb.Position{Next: offset, Rests: s.witnessBefore(source, id, offset)}})
	}
	return all
}

// witnessBefore returns the event before an offset of a log that a subscription reads, zero if there is none,
// or if it cannot be read: nobody is kept from passing over damage.
func (s *Store) witnessBefore(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (w format.Witness) {
	if offset <= 1 {
		return w
	}
	at, err := s.placeOfEvent(source, id, offset-1)
	if err != nil {
		return w
	}
	// An error is told by who reads the event.
	_ = s.log.Read(func(log *logdb.Reader) error {
		var v format.EventView
		if err := v.Decode(at.lsn, log.Value(at.lsn)); err != nil {
			return err
		}
		if err := at.check(&v); err != nil {
			return err
		}
		w = format.Witness{LSN: v.LSN, CRC: v.CRC}
		return nil
	})
	return w
}

// placeOfEvent finds an event of a log that a subscription reads.
func (s *Store) placeOfEvent(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (place, error) {
	var all []place
	var err error
	if ws := source.Workspace; ws != nil {
		o := messages.WLogOffset(offset)
		if all = s.wlogTail(*ws, o, o+1); len(all) == 0 {
			all, err = s.storedWLog(*ws, o, o+1)
		}
	} else {
		o := messages.PLogOffset(offset)
		all, err = s.plogPlaces(&s.partitions[id], o, o+1)
	}
	if err != nil {
		return place{}, err
	}
	if len(all) != 1 {
		return place{}, format.ErrMissing
	}
	return all[0], nil
}

// checkOwnPositions makes sure that all positions are of this log. One that is damaged is an error of whoever reads it.
func (s *Store) checkOwnPositions() error {
	return subsdb.View(s.files.Subscriptions.Load(), func(tx subsdb.Tx) error {
		names, err := tx.Names()
		for i := 0; err == nil && i < len(names); i++ {
			sub, positions, damage := tx.Standing(names[i])
			if sub != nil && damage == nil {
				err = tx.OfLog(names[i], subsdb.CheckRests(s.log, positions, messages.LSN(s.lastLSN.Load())))
			}
		}
		if errors.Is(err, subsdb.ErrOtherPositions) {
			return err
		}
		return nil
	})
}
