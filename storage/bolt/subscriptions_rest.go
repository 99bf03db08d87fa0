package bolt

import (
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
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
	_ = s.viewLog(func(log *logReader) error {
		var v format.EventView
		if err := v.Decode(at.lsn, log.value(at.lsn)); err != nil {
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

// checkRests makes sure that a log, which ends at an LSN, has the events on which positions rest. What of it
// cannot be read is told by who needs it.
func (s *Store) checkRests(positions []subsdb.Placed, end messages.LSN) error {
	return s.viewLog(func(log *logReader) error {
		for i := range positions {
			if err := checkRest(&positions[i], log, end); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkRest makes sure that the log, which ends at an LSN, has the event on which a position rests.
func checkRest(p *subsdb.Placed, log *logReader, end messages.LSN) error {
	at := p.Rests.LSN
	if at == 0 {
		return nil
	}
	// It may have been read, and rested on, before the end of the log was published.
	value := log.value(at)
	switch {
	case len(value) >= format.EventHeaderLen && format.Uint32(value[1:]) == p.Rests.CRC:
		return nil
	case at > end:
		return wrongPosition(p, "the log ends at LSN %d", end)
	}
	var v format.EventView
	if v.Decode(at, value) == nil {
		return wrongPosition(p, "the log has CRC %08x there", v.CRC)
	}
	return nil
}

func wrongPosition(p *subsdb.Placed, why string, args ...any) error {
	return fmt.Errorf("%w: partition %d: position %d rests on LSN %d with CRC %08x, %s: %w",
		storage.ErrForeign, p.Partition, p.Next, p.Rests.LSN, p.Rests.CRC, fmt.Sprintf(why, args...), errOtherPositions)
}

// checkOwnPositions makes sure that all positions are of this log. One that is damaged is an error of whoever reads it.
func (s *Store) checkOwnPositions() error {
	return s.subscriptions.view(func(tx subsdb.Tx) error {
		names, err := tx.Names()
		for i := 0; err == nil && i < len(names); i++ {
			sub, positions, damage := tx.Standing(names[i])
			if sub != nil && damage == nil {
				err = ofLog(tx, names[i], s.checkRests(positions, messages.LSN(s.lastLSN.Load())))
			}
		}
		if errors.Is(err, errOtherPositions) {
			return err
		}
		return nil
	})
}

// ofLog names the subscription of whose positions one is of another log.
func ofLog(tx subsdb.Tx, name string, err error) error {
	if errors.Is(err, errOtherPositions) {
		return tx.Damaged(format.BucketPositions, name, err)
	}
	return err
}
