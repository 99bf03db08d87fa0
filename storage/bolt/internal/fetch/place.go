package fetch

import (
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// Place is where an event lies in the log, and what its index says that it is.
// What is zero is not known.
type Place struct {
	LSN       messages.LSN
	Partition messages.PartitionID
	Offset    messages.PLogOffset
	Workspace messages.WSID
	WLog      messages.WLogOffset
}

// Source finds the next places of a read, at most n; none at its end.
type Source func(n int) ([]Place, error)

// Read decodes the event that lies there, and makes sure that it is the one that the index says. The view is valid as
// long as the reader.
func (at *Place) Read(log *logdb.Reader, v *format.EventView) error {
	value := log.Value(at.LSN)
	if value == nil {
		return at.damaged(format.ErrMissing)
	}
	err := v.Decode(at.LSN, value)
	if err == nil {
		err = at.check(v)
	}
	if err != nil {
		return at.damaged(err)
	}
	return nil
}

// check returns nil if the event is the one that the index says.
func (at *Place) check(v *format.EventView) error {
	if at.Offset != 0 {
		if err := v.Belongs(at.Partition, at.Offset); err != nil {
			return err
		}
	}
	if at.WLog != 0 && (v.Workspace != at.Workspace || v.WLogOffset != at.WLog) {
		return fmt.Errorf("%w: it is workspace %d, offset %d", format.ErrMisplaced, v.Workspace, v.WLogOffset)
	}
	return nil
}

// damaged names the place as exactly as it is known.
func (at *Place) damaged(cause error) *storage.DamagedError {
	damage := format.DamagedEvent(at.LSN, at.Partition, at.Offset, cause)
	if at.Offset == 0 && at.WLog != 0 {
		damage.Where += fmt.Sprintf(", workspace %d, offset %d", at.Workspace, at.WLog)
	}
	return damage
}

// StoredPLog finds entries of a partition's log in state.db.
func StoredPLog(state *boltfile.File, p messages.PartitionID, from, to messages.PLogOffset) ([]Place, error) {
	lsns, err := statedb.PLog(state, p, from, to)
	places := make([]Place, len(lsns))
	for i, lsn := range lsns {
		places[i] = Place{LSN: lsn, Partition: p, Offset: from + messages.PLogOffset(i)}
	}
	return places, err
}

// StoredWLog finds entries of a workspace's log in state.db.
func StoredWLog(state *boltfile.File, ws messages.WSID, from, to messages.WLogOffset) ([]Place, error) {
	lsns, err := statedb.WLog(state, ws, from, to)
	places := make([]Place, len(lsns))
	for i, lsn := range lsns {
		places[i] = Place{LSN: lsn, Workspace: ws, WLog: from + messages.WLogOffset(i)}
	}
	return places, err
}
