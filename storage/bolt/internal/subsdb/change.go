package subsdb

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// Change is one entry of subscriptions.db that is written, or deleted.
type Change = format.Change

// Apply writes changes in their order.
func (tx Tx) Apply(changes []Change) error {
	for _, c := range changes {
		b := tx.bolt.Bucket(c.Bucket)
		var err error
		switch {
		case c.All:
			err = deleteAll(b, c.Key)
		case c.Value == nil:
			err = b.Delete(c.Key)
		default:
			err = b.Put(c.Key, c.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteAll deletes the entries whose keys begin with a prefix.
func deleteAll(b *bbolt.Bucket, prefix []byte) error {
	var keys [][]byte // a cursor may pass over one if its bucket changes
	c := b.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// Counting adds the change of how many subscriptions there are.
func (tx Tx) Counting(more int, changes []Change) ([]Change, error) {
	n, err := tx.Count()
	if err != nil {
		return nil, err
	}
	return append(changes, CountChange(n+uint64(more))), nil
}

// CountChange says how many subscriptions there are.
func CountChange(n uint64) Change {
	return Change{
		Bucket: format.BucketHeader, Key: format.KeySubscriptions,
		Value: format.SealedUint(nil, format.BucketHeader, format.KeySubscriptions, n),
	}
}

// NewSubscription returns the entries of a subscription that is not there yet, but for its positions. It
// shares nothing with s.
func NewSubscription(s *storage.Subscription) []Change {
	d := format.Definition{SubscriptionSource: s.SubscriptionSource, Positions: uint32(len(s.Next)), Stopped: storage.CutSubscriptionReason(s.Stopped)}
	var changes []Change
	parked := make(map[string]bool, len(s.Parked))
	for i := range s.Parked {
		c := ParkedChange(s.Name, &s.Parked[i])
		parked[string(c.Key)] = true
		changes = append(changes, c)
	}
	d.Parked = uint64(len(parked))
	return append(changes, DefinitionChange(s.Name, &d))
}

// DefinitionChange puts the definition of a subscription.
func DefinitionChange(name string, d *format.Definition) Change {
	key := []byte(name)
	return Change{Bucket: format.BucketSubscriptions, Key: key, Value: d.Encode(key)}
}

// PositionChange puts a position of a subscription.
func PositionChange(name string, at Placed) Change {
	key := format.PositionKey(name, at.Partition)
	return Change{Bucket: format.BucketPositions, Key: key, Value: at.Encode(key)}
}

// ParkedChange puts an event that a subscription has parked.
func ParkedChange(name string, e *storage.ParkedEvent) Change {
	key := format.ParkedKey(name, e.Partition, e.Offset)
	cut := *e
	cut.Reason = storage.CutSubscriptionReason(e.Reason)
	return Change{Bucket: format.BucketParked, Key: key, Value: format.EncodeParked(key, &cut)}
}

// Deletions returns the changes that delete all that a subscription has. They do not say what that is: where something of
// a damaged one is missing, another replica may have it.
func Deletions(name string) []Change {
	prefix := format.SubscriptionPrefix(name)
	return []Change{
		{Bucket: format.BucketSubscriptions, Key: []byte(name)},
		{Bucket: format.BucketPositions, Key: prefix, All: true},
		{Bucket: format.BucketParked, Key: prefix, All: true},
	}
}

// OwnSource returns a copy that shares nothing with its caller's.
func OwnSource(s storage.SubscriptionSource) storage.SubscriptionSource {
	if s.Partition != nil {
		s.Partition = new(*s.Partition)
	}
	if s.Workspace != nil {
		s.Workspace = new(*s.Workspace)
	}
	s.Kinds = slices.Clone(s.Kinds)
	return s
}

// OwnMove returns a copy that shares nothing with its caller's, who may be gone before it
// is served.
func OwnMove(m storage.SubscriptionMove) storage.SubscriptionMove {
	m.Next, m.Park, m.Unpark = maps.Clone(m.Next), slices.Clone(m.Park), slices.Clone(m.Unpark)
	if m.Stopped != nil {
		m.Stopped = new(*m.Stopped)
	}
	return m
}

// Moving is a move that is being judged.
type moving struct {
	tx   Tx
	move *storage.SubscriptionMove
	def  format.Definition
	// parked says of the parked events that the move is about whether they will be there.
	parked  map[string]bool
	changes []Change
}

// Moving returns the changes of a move that is allowed, from where the subscription stood to positions.
func (tx Tx) Moving(have *format.Definition, m *storage.SubscriptionMove, before *storage.Subscription, positions []Placed) ([]Change, error) {
	j := &moving{tx: tx, move: m, def: *have, parked: make(map[string]bool)}
	return j.run(before, positions)
}

func (j *moving) run(before *storage.Subscription, positions []Placed) ([]Change, error) {
	for _, at := range positions {
		p, next := at.Partition, at.Next
		if _, there := before.Next[p]; !there {
			j.def.Positions++
		}
		if next < before.Position(p) {
			if err := j.rewind(p, next); err != nil {
				return nil, err
			}
		}
		j.changes = append(j.changes, PositionChange(j.move.Name, at))
	}
	for i := range j.move.Unpark {
		e := &j.move.Unpark[i]
		if err := j.unpark(format.ParkedKey(j.move.Name, e.Partition, e.Offset)); err != nil {
			return nil, err
		}
	}
	for i := range j.move.Park {
		j.park(ParkedChange(j.move.Name, &j.move.Park[i]))
	}
	changed := len(j.changes)
	if j.move.Stopped != nil {
		j.def.Stopped = storage.CutSubscriptionReason(*j.move.Stopped)
		changed++
	}
	if changed == 0 {
		return nil, nil
	}
	return append(j.changes, DefinitionChange(j.move.Name, &j.def)), nil
}

// rewind takes out what is parked from a position on: it will be delivered again. One that
// is damaged may be of another place, and would be lost.
func (j *moving) rewind(p messages.PartitionID, next uint64) error {
	prefix := format.PositionKey(j.move.Name, p)
	c := j.tx.parked.Cursor()
	for k, v := c.Seek(format.ParkedKey(j.move.Name, p, next)); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if _, err := format.DecodeParked(k, v); err != nil {
			return j.tx.Damaged(format.BucketParked, j.move.Name, err)
		}
		if err := j.unpark(bytes.Clone(k)); err != nil {
			return err
		}
	}
	return nil
}

// isParked reports whether an event is parked, as far as the move has come.
func (j *moving) isParked(key []byte) bool {
	there, known := j.parked[string(key)]
	if !known {
		there = j.tx.parked.Get(key) != nil
	}
	return there
}

// unpark takes out what is parked, which the definition must know of.
func (j *moving) unpark(key []byte) error {
	if j.isParked(key) {
		if j.def.Parked == 0 {
			return j.tx.Damaged(format.BucketParked, j.move.Name, fmt.Errorf("%w: there is one, and none is counted", format.ErrMissing))
		}
		j.def.Parked--
		j.changes = append(j.changes, Change{Bucket: format.BucketParked, Key: key})
	}
	j.parked[string(key)] = false
	return nil
}

func (j *moving) park(c Change) {
	if !j.isParked(c.Key) {
		j.def.Parked++
	}
	j.changes = append(j.changes, c)
	j.parked[string(c.Key)] = true
}
