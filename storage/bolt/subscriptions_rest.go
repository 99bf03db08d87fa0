package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// errOtherPositions says what is wrong with a position that rests on an event which the log has not, or
// has differently, and what to do about it.
var errOtherPositions = errors.New("this log has lost its end or is an older one, or the position is of a copy of the store that has gone on by itself; " +
	"put the right file in place, or rewind or delete the subscription")

// position is where a subscription stands in a log: the next offset, and the event before that, on which
// it rests. Two copies of a store have one id; if both go on, the position of one says of the other's log
// that events are handled which it has never seen, and a log that was put back from an older copy grows
// past it sooner or later. The event tells, for ever.
type position struct {
	next uint64
	// rests is zero for the beginning of a log, if the event cannot be read, and in a file of the first
	// format.
	rests witness
}

// Lengths of a position in bytes, without the CRC.
const (
	barePositionLen = 8
	positionLen     = 20
)

func (p position) encode(key []byte) []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, positionLen+sealedOverhead), p.next)
	if p.rests.lsn != 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(p.rests.lsn))
		b = binary.BigEndian.AppendUint32(b, p.rests.crc)
	}
	return seal(b, 0, bucketPositions, key)
}

// decodePosition is safe on any bytes.
func decodePosition(key, value []byte) (p position, err error) {
	b, err := unsealAll(bucketPositions, key, value)
	if err != nil {
		return p, err
	}
	switch len(b) {
	case positionLen:
		p.rests = witness{lsn: messages.LSN(be64(b[8:])), crc: be32(b[16:])}
		if p.rests.lsn == 0 {
			return p, errLayout
		}
	case barePositionLen:
	default:
		return p, errLayout
	}
	p.next = be64(b)
	return p, nil
}

// placed is a position and the partition under which its log stands.
type placed struct {
	partition messages.PartitionID
	position
}

// placeAt returns positions in logs that have come there, with the events on which they rest.
func (s *Store) placeAt(source *storage.SubscriptionSource, next map[messages.PartitionID]uint64) []placed {
	all := make([]placed, 0, len(next))
	for id, offset := range next {
		all = append(all, placed{partition: id, position: position{next: offset, rests: s.witnessBefore(source, id, offset)}})
	}
	return all
}

// witnessBefore returns the event before an offset of a log that a subscription reads, zero if there is none,
// or if it cannot be read: nobody is kept from passing over damage.
func (s *Store) witnessBefore(source *storage.SubscriptionSource, id messages.PartitionID, offset uint64) (w witness) {
	if offset <= 1 {
		return w
	}
	at, err := s.placeOfEvent(source, id, offset-1)
	if err != nil {
		return w
	}
	// An error is told by who reads the event.
	_ = s.viewLog(func(log *logReader) error {
		var v eventView
		if err := v.decode(at.lsn, log.value(at.lsn)); err != nil {
			return err
		}
		if err := at.check(&v); err != nil {
			return err
		}
		w = witness{lsn: v.lsn, crc: v.crc}
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
		return place{}, errMissing
	}
	return all[0], nil
}

// checkRests makes sure that a log, which ends at an LSN, has the events on which positions rest. What of it
// cannot be read is told by who needs it.
func (s *Store) checkRests(positions []placed, end messages.LSN) error {
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
func checkRest(p *placed, log *logReader, end messages.LSN) error {
	at := p.rests.lsn
	if at == 0 {
		return nil
	}
	// It may have been read, and rested on, before the end of the log was published.
	value := log.value(at)
	switch {
	case len(value) >= eventHeaderLen && be32(value[1:]) == p.rests.crc:
		return nil
	case at > end:
		return wrongPosition(p, "the log ends at LSN %d", end)
	}
	var v eventView
	if v.decode(at, value) == nil {
		return wrongPosition(p, "the log has CRC %08x there", v.crc)
	}
	return nil
}

func wrongPosition(p *placed, why string, args ...any) error {
	return fmt.Errorf("%w: partition %d: position %d rests on LSN %d with CRC %08x, %s: %w",
		storage.ErrForeign, p.partition, p.next, p.rests.lsn, p.rests.crc, fmt.Sprintf(why, args...), errOtherPositions)
}

// checkOwnPositions makes sure that all positions are of this log. One that is damaged is an error of whoever reads it.
func (s *Store) checkOwnPositions() error {
	return s.subscriptions.view(func(tx subscriptionTx) error {
		names, err := tx.names()
		for i := 0; err == nil && i < len(names); i++ {
			sub, positions, damage := tx.standing(names[i])
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
func ofLog(tx subscriptionTx, name string, err error) error {
	if errors.Is(err, errOtherPositions) {
		return tx.damaged(bucketPositions, name, err)
	}
	return err
}
