package fetch

import (
	"context"
	"math"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/bolt/internal/statedb"
)

// TailRow is a record that the tail has written: the row lies in an event.
type TailRow struct {
	Number messages.Number
	Place
}

// rows are those of a sequence of a workspace.
type rows struct {
	Reader
	ctx   context.Context
	ws    messages.WSID
	seq   messages.SeqID
	tail  []TailRow
	yield func(storage.Row, error) bool
}

// Rows yields the rows of a range: the tail's view of them, which was taken first, and state.db's. The last error is why
// the tail's partition has failed, nil if it has not.
func (r Reader) Rows(
	ctx context.Context, state *boltfile.File, ws messages.WSID, in storage.RecordRange,
	tail func(storage.RecordRange) ([]TailRow, error), yield func(storage.Row, error) bool,
) {
	if in.To == 0 {
		in.To = math.MaxUint64
	}
	if err := r.Enter(ctx); err != nil {
		yield(storage.Row{}, err)
		return
	}
	written, failed := tail(in)
	all := &rows{Reader: r, ctx: ctx, ws: ws, seq: in.Seq, tail: written, yield: yield}
	size := FirstChunk
	for more := true; more; size = min(2*size, maxChunk) {
		if err := r.Enter(ctx); err != nil {
			yield(storage.Row{}, err)
			return
		}
		stored, next, err := statedb.Rows(state, ws, in, size, maxBytes)
		r.warmPointed(stored)
		more = err == nil && next != 0
		through := in.To
		if more {
			through = next - 1
		} else if err != nil {
			through = lastNumber(stored)
		}
		if goOn := all.merge(stored, through); !goOn {
			return
		}
		if err != nil {
			yield(storage.Row{}, err)
			return
		}
		in.From = next
	}
	if failed != nil {
		yield(storage.Row{}, failed)
	}
}

// warmPointed brings the events that pointers lead to into memory.
func (r Reader) warmPointed(rows []statedb.Row) {
	var lsns []messages.LSN
	for i := range rows {
		if rows[i].Pointed {
			lsns = append(lsns, rows[i].LSN)
		}
	}
	r.Log.Warm(lsns)
}

func lastNumber(rows []statedb.Row) messages.Number {
	if len(rows) == 0 {
		return 0
	}
	return rows[len(rows)-1].ID.Number
}

// merge yields the rows of both views up to a number, in order. Where both
// have a row the later one counts. It returns false when the read is over.
func (m *rows) merge(stored []statedb.Row, through messages.Number) bool {
	for len(stored) > 0 || len(m.tail) > 0 && m.tail[0].Number <= through {
		if err := m.Enter(m.ctx); err != nil {
			m.yield(storage.Row{}, err)
			return false
		}
		fromTail := len(m.tail) > 0 && (len(stored) == 0 || m.tail[0].Number <= stored[0].ID.Number)
		if fromTail && len(stored) > 0 && m.tail[0].Number == stored[0].ID.Number {
			fromTail = m.tail[0].LSN > stored[0].LSN
			if fromTail {
				stored = stored[1:]
			} else {
				m.tail = m.tail[1:]
			}
		}
		var row storage.Row
		var err error
		if fromTail {
			row, err = m.copyRow(m.tail[0].Number, &m.tail[0].Place)
			m.tail = m.tail[1:]
		} else {
			if row = stored[0].Row; stored[0].Pointed {
				row, err = m.copyRow(row.ID.Number, &Place{LSN: stored[0].LSN})
			}
			stored = stored[1:]
		}
		if err != nil {
			m.yield(storage.Row{}, err)
			return false
		}
		if !m.yield(row, nil) {
			return false
		}
	}
	return true
}

// copyRow reads a row out of the event that wrote it.
func (m *rows) copyRow(n messages.Number, at *Place) (row storage.Row, err error) {
	id := messages.RecordID{Seq: m.seq, Number: n}
	err = m.Log.Read(func(log *logdb.Reader) error {
		var view format.EventView
		if err := at.Read(log, &view); err != nil {
			return err
		}
		if view.Workspace != m.ws {
			return at.damaged(format.ErrMisplaced)
		}
		// The last write of a record in an event counts.
		for _, rec := range slices.Backward(view.Records) {
			if rec.ID == id {
				row = storage.Row{ID: id, Data: statedb.CloneData(rec.Data), Partition: view.Partition, PLogOffset: view.PLogOffset}
				return nil
			}
		}
		return at.damaged(format.ErrMisplaced)
	})
	return row, err
}
