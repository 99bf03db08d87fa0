package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// Read returns the row.
func (j *Row) Read() (storage.Row, error) {
	data := content{JSON: j.Data, Base64: j.DataBase64}
	b, err := data.bytes()
	if err != nil {
		return storage.Row{}, fmt.Errorf("record %d/%d: %w", j.Sequence, j.Number, err)
	}
	return storage.Row{
		ID: messages.RecordID{Seq: j.Sequence, Number: j.Number}, Data: b, Partition: j.Partition, PLogOffset: j.PLogOffset,
	}, nil
}

// ReadLast reads an element of a workspace's sequences: its last number, 0 if it has none.
func ReadLast(raw json.RawMessage) (n messages.SequenceNumber, err error) {
	var j lastJSON
	if err = json.Unmarshal(raw, &j); err != nil {
		return n, err
	}
	n = messages.SequenceNumber{Seq: j.Sequence, Number: j.Last}
	n.Period, err = readDate(j.Period)
	return n, err
}

// PartitionStatus is where a partition stands, in the words of its JSON.
type PartitionStatus = partitionJSON

// Read returns the status, as far as it is told.
func (j *partitionJSON) Read() (s messages.PartitionStatus, err error) {
	s = messages.PartitionStatus{Partition: j.Partition, Details: j.Details, Epoch: j.Epoch, Last: j.Last, Replayed: j.Replayed, Restarts: j.Restarts}
	if s.State, err = readState(j.State); err != nil {
		return s, err
	}
	if j.Error != "" {
		s.Err = errors.New(j.Error)
	}
	if j.Displaced != "" {
		s.Displaced = fmt.Errorf("%w: %s", storage.ErrDisplaced, j.Displaced)
	}
	if j.Full != "" {
		s.Full = fmt.Errorf("%w: %s", storage.ErrFull, j.Full)
	}
	for _, n := range j.NearlyUsed {
		period, err := readDate(n.Period)
		if err != nil {
			return s, err
		}
		s.NearlyUsed = append(s.NearlyUsed, messages.NearlyUsed{
			Workspace: n.Workspace, Seq: n.Sequence, Period: period, Name: n.Name, Last: n.Last, Largest: n.Largest,
		})
	}
	return s, nil
}

// readState reads the state of an actor.
func readState(text string) (state messages.ActorState, err error) {
	for state.String() != text {
		if state++; state > messages.StateFailed {
			return state, fmt.Errorf("%w: %.40q", errUnread, text)
		}
	}
	return state, nil
}

// Read returns the status, as far as it is told.
func (j *ActorStatus) Read() (messages.ActorStatus, error) {
	state, err := readState(j.State)
	return messages.ActorStatus{Group: j.Group, ID: j.Key, State: state, Details: j.Details, Restarts: j.Restarts, Restart: j.Restart}, err
}
