package sequencer

import (
	"fmt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// inFlight is what the partition was asked to append and has not answered yet,
// wherever it waits.
type inFlight struct{ events, bytes int }

// append takes an Append. What is wrong with it whatever the state of its
// workspace is refused at once.
func (c *Core) append(from Requester, m *messages.Append) {
	w := waiting{from: from, append: m}
	if err := c.checkAppend(&w); err != nil {
		c.refuse(from, err)
		return
	}
	c.inFlight.events += len(m.Drafts)
	c.inFlight.bytes += w.bytes
	if c.state == messages.StateInitializing {
		c.queue.push(w)
		return
	}
	c.admit(w)
}

// answered forgets an Append that gets its answer now.
func (c *Core) answered(w *waiting) {
	c.release(w)
	if w.append != nil {
		c.inFlight.events -= len(w.append.Drafts)
		c.inFlight.bytes -= w.bytes
	}
}

// refuseWaiter answers a request that waited.
func (c *Core) refuseWaiter(w *waiting, err error) {
	c.refuse(w.from, err)
	c.answered(w)
}

// What an Append in flight takes besides its bodies and the data of its records,
// in bytes, about.
const (
	eventBytes  = 256
	recordBytes = 64
	numberBytes = 16
)

// checkAppend returns why an Append is refused whatever its workspace's numbers
// are, and notes what it asks for.
func (c *Core) checkAppend(w *waiting) (err error) {
	m := w.append
	if w.kind, err = c.kindFor(m.Workspace, m.Kind); err != nil {
		return err
	}
	if err := c.inTime(m.Deadline); err != nil {
		return err
	}
	if err := checkTrace(m.Trace); err != nil {
		return err
	}
	if err := c.checkLimits(m); err != nil {
		if len(m.Drafts) == 0 || m.DedupID.IsZero() {
			return err
		}
		// The settings may have been higher when it was written first. What is in it is
		// compared with that.
		w.otherwise, w.bytes = err, AppendBytes(m)
		return nil
	}
	for i := range m.Drafts {
		if err := w.checkDraft(&m.Drafts[i]); err != nil {
			return fmt.Errorf("workspace %d, draft %d: %w", m.Workspace, i, err)
		}
	}
	if err := checkCreated(m); err != nil {
		return err
	}
	return w.checkZones()
}

// checkZones returns an error for a zone that is none here.
func (w *waiting) checkZones() error {
	for i := range w.append.Drafts {
		name := w.append.Drafts[i].Zone
		if name == "" {
			continue
		}
		err := checkZone(name)
		if err == nil {
			continue
		}
		err = fmt.Errorf("workspace %d, draft %d: %w", w.append.Workspace, i, err)
		if w.append.DedupID.IsZero() || !calendar.IsZoneName(name) {
			return err
		}
		// A machine that knows the zone may have written it.
		w.otherwise, w.bytes = err, AppendBytes(w.append)
		return nil
	}
	return nil
}

// checkTrace returns ids.ErrID for what is neither a trace id nor none.
func checkTrace(t ids.TraceID) error {
	if t == 0 {
		return nil
	}
	return t.Validate()
}

// checkLimits returns why an Append has too much in it, or nothing.
func (c *Core) checkLimits(m *messages.Append) error {
	if n := len(m.Drafts); n == 0 || n > c.settings.BatchEvents {
		return fmt.Errorf("%w: workspace %d: got %d drafts, want 1 to %d", messages.ErrDraft, m.Workspace, n, c.settings.BatchEvents)
	}
	if got := AppendBytes(m); got > c.settings.GroupBytes {
		return &messages.TooLargeError{Workspace: m.Workspace, Got: got, Want: c.settings.GroupBytes}
	}
	return nil
}

// checkDraft adds up what the next draft asks for.
func (w *waiting) checkDraft(d *messages.Draft) error {
	w.bytes += bytesOf(d)
	if err := checkDate(d.Date); err != nil {
		return err
	}
	if err := w.checkTakenOver(d); err != nil {
		return err
	}
	for _, wanted := range d.Wanted {
		if w.kind.index(wanted.Seq) <= wlogOffset {
			return fmt.Errorf("%w: kind %d: got sequence %d", messages.ErrUnknownSequence, w.kind.id, wanted.Seq)
		}
		if err := w.addNumbers(wanted.Numbers()); err != nil {
			return err
		}
	}
	for i := range d.Records {
		r := &d.Records[i]
		if err := w.checkRecord(r); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	return nil
}

// checkTakenOver adds up what the next draft brings along.
func (w *waiting) checkTakenOver(d *messages.Draft) error {
	if len(d.Brought) == 0 && len(d.Moves) == 0 {
		return nil
	}
	if n := len(d.Moves); n > messages.MaxEventNumbers {
		return fmt.Errorf("%w: got %d moves, want at most %d", messages.ErrTooManyNumbers, n, messages.MaxEventNumbers)
	}
	if err := w.kind.checkTaken(d, d.Brought); err != nil {
		return err
	}
	if err := w.kind.checkTaken(d, d.Moves); err != nil {
		return err
	}
	return w.addNumbers(len(d.Brought))
}

// addNumbers adds numbers of the next draft to those of the message so far.
func (w *waiting) addNumbers(more int) error {
	n := uint64(more) + uint64(w.numbers)
	if n > messages.MaxEventNumbers {
		return fmt.Errorf("%w: got %d, want at most %d", messages.ErrTooManyNumbers, n, messages.MaxEventNumbers)
	}
	w.bytes += more * numberBytes
	w.numbers = int(n)
	return nil
}

// checkDate returns an error for a business date that is no day. There may be none.
func checkDate(d calendar.Date) error {
	if d != 0 && !d.Valid() {
		return fmt.Errorf("%w: business date: got %d, want one like 20260329", messages.ErrDraft, d)
	}
	return nil
}

// AppendBytes returns what an Append takes in memory before it is numbered, in bytes, about.
func AppendBytes(m *messages.Append) (n int) {
	for i := range m.Drafts {
		n += bytesOf(&m.Drafts[i]) + (len(m.Drafts[i].Wanted)+len(m.Drafts[i].Brought))*numberBytes + len(m.Drafts[i].Zone)
	}
	return n
}

// bytesOf returns what a draft takes without its numbers.
func bytesOf(d *messages.Draft) int {
	n := eventBytes + len(d.Body) + len(d.Moves)*numberBytes
	for i := range d.Records {
		n += recordBytes + len(d.Records[i].Data)
	}
	return n
}

// checkRecord checks a record of the draft that was added up last: it can refer to
// the numbers of that draft and of those before.
func (w *waiting) checkRecord(r *messages.DraftRecord) error {
	if r.ID == (messages.RecordID{}) {
		if r.Number < 0 || r.Number >= w.numbers {
			return fmt.Errorf("%w: got number %d of %d", messages.ErrDraft, r.Number, w.numbers)
		}
		return nil
	}
	i, ok := w.kind.ofRecords(r.ID.Seq)
	if !ok {
		return fmt.Errorf("%w: kind %d: id %v", messages.ErrUnknownSequence, w.kind.id, r.ID)
	}
	def := &w.kind.sequences[i]
	switch {
	case r.New && r.ID.Number > def.MaxExplicit():
		return fmt.Errorf("%w: got %v, want at most %d", messages.ErrExplicitID, r.ID, def.MaxExplicit())
	case r.ID.Number == 0 || r.ID.Number > def.Max():
		return fmt.Errorf("%w: got id %v, want 1 to %d", messages.ErrDraft, r.ID, def.Max())
	}
	return nil
}

// checkCreated refuses a record that is created when it was written already. The
// store would refuse it too, but not without everything that it writes together
// with it.
func checkCreated(m *messages.Append) error {
	return createdOnce(m, func(draft, record int) row { return draftRow(&m.Drafts[draft].Records[record]) })
}

// checkNumbered is checkCreated with the ids of all rows known: an explicit one may be a
// number that the same message was given.
func checkNumbered(m *messages.Append, events []messages.Event) error {
	var named, numbered bool
	for i := range m.Drafts {
		for j := range m.Drafts[i].Records {
			byNumber := m.Drafts[i].Records[j].ID == (messages.RecordID{})
			named, numbered = named || !byNumber, numbered || byNumber
		}
	}
	if !named || !numbered {
		return nil
	}
	return createdOnce(m, func(draft, record int) row { return row{id: events[draft].Records[record].ID} })
}

// createdOnce returns an error unless each new record is the first write of its row.
func createdOnce(m *messages.Append, rowAt func(draft, record int) row) error {
	var written rows
	for i := range m.Drafts {
		for j := range m.Drafts[i].Records {
			if was := written.add(rowAt(i, j)); was && m.Drafts[i].Records[j].New {
				return fmt.Errorf("%w: workspace %d, draft %d, record %d: was written before it is created",
					messages.ErrDraft, m.Workspace, i, j)
			}
		}
	}
	return nil
}

// row names a record of a message: by its id, or by the index of its number.
type row struct {
	id     messages.RecordID
	number int
}

func draftRow(r *messages.DraftRecord) row {
	if r.ID == (messages.RecordID{}) {
		return row{number: r.Number}
	}
	return row{id: r.ID}
}

// rows is a set; a small one needs no memory.
type rows struct {
	few  [8]row
	n    int
	many map[row]struct{}
}

// add adds a row and reports whether it was there.
func (s *rows) add(k row) (was bool) {
	for i := range s.n {
		if s.few[i] == k {
			return true
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = k
		s.n++
		return false
	}
	if _, was = s.many[k]; !was {
		if s.many == nil {
			s.many = make(map[row]struct{})
		}
		s.many[k] = struct{}{}
	}
	return was
}
