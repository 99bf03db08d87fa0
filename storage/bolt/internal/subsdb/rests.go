package subsdb

import (
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
)

// ErrOtherPositions says what is wrong with a position that rests on an event which the log has not, or
// has differently, and what to do about it.
var ErrOtherPositions = errors.New("this log has lost its end or is an older one, " +
	"or the position is of a copy of the store that has gone on by itself; " +
	"put the right file in place, or rewind or delete the subscription")

// CheckRests makes sure that a log, which ends at an LSN, has the events on which positions rest. What of it
// cannot be read is told by whoever needs it.
func CheckRests(log *logdb.Log, positions []Placed, end messages.LSN) error {
	return log.Read(func(log *logdb.Reader) error {
		for i := range positions {
			if err := checkRest(&positions[i], log, end); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkRest makes sure that the log, which ends at an LSN, has the event on which a position rests.
func checkRest(p *Placed, log *logdb.Reader, end messages.LSN) error {
	at := p.Rests.LSN
	if at == 0 {
		return nil
	}
	// It may have been read, and rested on, before the end of the log was published.
	value := log.Value(at)
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

func wrongPosition(p *Placed, why string, args ...any) error {
	return fmt.Errorf("%w: partition %d: position %d rests on LSN %d with CRC %08x, %s: %w",
		storage.ErrForeign, p.Partition, p.Next, p.Rests.LSN, p.Rests.CRC, fmt.Sprintf(why, args...), ErrOtherPositions)
}

// OfLog names the subscription of whose positions one is of another log.
func (tx Tx) OfLog(name string, err error) error {
	if errors.Is(err, ErrOtherPositions) {
		return tx.Damaged(format.BucketPositions, name, err)
	}
	return err
}
