package bolt

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// change is one entry of subscriptions.db that is written, or deleted if value is nil.
type change struct{ bucket, key, value []byte }

// apply writes changes in their order.
func (tx subscriptionTx) apply(changes []change) error {
	for _, c := range changes {
		b := tx.header
		switch {
		case bytes.Equal(c.bucket, bucketSubscriptions):
			b = tx.subscriptions
		case bytes.Equal(c.bucket, bucketPositions):
			b = tx.positions
		case bytes.Equal(c.bucket, bucketParked):
			b = tx.parked
		}
		var err error
		if c.value == nil {
			err = b.Delete(c.key)
		} else {
			err = b.Put(c.key, c.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// counting adds the change of how many subscriptions there are.
func (tx subscriptionTx) counting(more int, changes []change) ([]change, error) {
	n, err := tx.count()
	if err != nil {
		return nil, err
	}
	return append(changes, countChange(n+uint64(more))), nil
}

func countChange(n uint64) change {
	return change{bucketHeader, keySubscriptions, sealedUint(nil, bucketHeader, keySubscriptions, n)}
}

// newSubscription returns the entries of a subscription that is not there yet, but for its positions. It
// shares nothing with s.
func newSubscription(s *storage.Subscription) []change {
	d := definition{SubscriptionSource: s.SubscriptionSource, positions: uint32(len(s.Next)), stopped: storage.CutSubscriptionReason(s.Stopped)}
	var changes []change
	parked := make(map[string]bool, len(s.Parked))
	for i := range s.Parked {
		c := parkedChange(s.Name, &s.Parked[i])
		parked[string(c.key)] = true
		changes = append(changes, c)
	}
	d.parked = uint64(len(parked))
	return append(changes, definitionChange(s.Name, &d))
}

func definitionChange(name string, d *definition) change {
	key := []byte(name)
	return change{bucketSubscriptions, key, d.encode(key)}
}

func positionChange(name string, at placed) change {
	key := positionKey(name, at.partition)
	return change{bucketPositions, key, at.encode(key)}
}

func parkedChange(name string, e *storage.ParkedEvent) change {
	key := parkedKey(name, e.Partition, e.Offset)
	cut := *e
	cut.Reason = storage.CutSubscriptionReason(e.Reason)
	return change{bucketParked, key, encodeParked(key, &cut)}
}

// deletions returns the changes that delete all that a subscription has.
func (tx subscriptionTx) deletions(name string) []change {
	changes := []change{{bucket: bucketSubscriptions, key: []byte(name)}}
	prefix := subscriptionPrefix(name)
	c := tx.positions.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		changes = append(changes, change{bucket: bucketPositions, key: bytes.Clone(k)})
	}
	c = tx.parked.Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		changes = append(changes, change{bucket: bucketParked, key: bytes.Clone(k)})
	}
	return changes
}

// ownSource returns a copy that shares nothing with its caller's.
func ownSource(s storage.SubscriptionSource) storage.SubscriptionSource {
	if s.Partition != nil {
		s.Partition = new(*s.Partition)
	}
	if s.Workspace != nil {
		s.Workspace = new(*s.Workspace)
	}
	s.Kinds = slices.Clone(s.Kinds)
	return s
}

// ownMove returns a copy that shares nothing with its caller's, who may be gone before it
// is served.
func ownMove(m storage.SubscriptionMove) storage.SubscriptionMove {
	m.Next, m.Park, m.Unpark = maps.Clone(m.Next), slices.Clone(m.Park), slices.Clone(m.Unpark)
	if m.Stopped != nil {
		m.Stopped = new(*m.Stopped)
	}
	return m
}

// moving is a move that is being judged.
type moving struct {
	tx   subscriptionTx
	move *storage.SubscriptionMove
	def  definition
	// parked says of the parked events that the move is about whether they will be there.
	parked  map[string]bool
	changes []change
}

// moving returns the changes of a move that is allowed, from where the subscription stood to positions.
func (tx subscriptionTx) moving(have *definition, m *storage.SubscriptionMove, before *storage.Subscription, positions []placed) ([]change, error) {
	j := &moving{tx: tx, move: m, def: *have, parked: make(map[string]bool)}
	return j.run(before, positions)
}

func (j *moving) run(before *storage.Subscription, positions []placed) ([]change, error) {
	for _, at := range positions {
		p, next := at.partition, at.next
		if _, there := before.Next[p]; !there {
			j.def.positions++
		}
		if next < before.Position(p) {
			if err := j.rewind(p, next); err != nil {
				return nil, err
			}
		}
		j.changes = append(j.changes, positionChange(j.move.Name, at))
	}
	for i := range j.move.Unpark {
		e := &j.move.Unpark[i]
		if err := j.unpark(parkedKey(j.move.Name, e.Partition, e.Offset)); err != nil {
			return nil, err
		}
	}
	for i := range j.move.Park {
		j.park(parkedChange(j.move.Name, &j.move.Park[i]))
	}
	changed := len(j.changes)
	if j.move.Stopped != nil {
		j.def.stopped = storage.CutSubscriptionReason(*j.move.Stopped)
		changed++
	}
	if changed == 0 {
		return nil, nil
	}
	return append(j.changes, definitionChange(j.move.Name, &j.def)), nil
}

// rewind takes out what is parked from a position on: it will be delivered again. One that
// is damaged may be of another place, and would be lost.
func (j *moving) rewind(p messages.PartitionID, next uint64) error {
	prefix := positionKey(j.move.Name, p)
	c := j.tx.parked.Cursor()
	for k, v := c.Seek(parkedKey(j.move.Name, p, next)); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		if _, err := decodeParked(k, v); err != nil {
			return j.tx.damaged(bucketParked, j.move.Name, err)
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
		if j.def.parked == 0 {
			return j.tx.damaged(bucketParked, j.move.Name, fmt.Errorf("%w: there is one, and none is counted", errMissing))
		}
		j.def.parked--
		j.changes = append(j.changes, change{bucket: bucketParked, key: key})
	}
	j.parked[string(key)] = false
	return nil
}

func (j *moving) park(c change) {
	if !j.isParked(c.key) {
		j.def.parked++
	}
	j.changes = append(j.changes, c)
	j.parked[string(c.key)] = true
}
