package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// ErrSubscriptions is returned when subscriptions can't be imported with the events.
var ErrSubscriptions = errors.New("the subscriptions cannot be imported")

// subscriptionsVersion is that of the files of subscriptions.
const subscriptionsVersion = 1

// subscriptionsJSON is the first line of a file of subscriptions.
type subscriptionsJSON struct {
	Version     int    `json:"partita_subscriptions"`
	Application string `json:"application"`
	Partitions  uint32 `json:"partitions"`
	// EventsSHA256 is the sum in the last line of the file of events.
	EventsSHA256 string `json:"events_sha256"`
}

type subscriptionJSON struct {
	Name      string                `json:"name"`
	Partition *messages.PartitionID `json:"partition,omitempty"`
	Workspace *messages.WSID        `json:"workspace,omitempty,string"`
	Kinds     []messages.WSKind     `json:"kinds,omitempty"`
	Stopped   string                `json:"stopped,omitempty"`
	Next      []positionJSON        `json:"next"`
	Parked    []parkedJSON          `json:"parked,omitempty"`
}

type positionJSON struct {
	Partition messages.PartitionID `json:"partition"`
	Offset    uint64               `json:"offset,string"`
}

type parkedJSON struct {
	positionJSON
	Reason string             `json:"reason"`
	Tries  uint32             `json:"tries"`
	At     messages.Timestamp `json:"at_microseconds"`
}

// Subscriptions are what a file of subscriptions has.
type Subscriptions struct {
	head subscriptionsJSON
	all  []storage.Subscription
}

// Count is how many there are.
func (s *Subscriptions) Count() int { return len(s.all) }

// belongTo returns nil if a file of events with a sum is the one that was exported with them.
func (s *Subscriptions) belongTo(digest string) error {
	if s.head.EventsSHA256 == digest {
		return nil
	}
	return fmt.Errorf("%w: they belong to events with SHA-256 %s, got %s", ErrSubscriptions, s.head.EventsSHA256, digest)
}

// SubscriptionSource is where subscriptions come from.
type SubscriptionSource interface {
	storage.Subscriptions
	Descriptor() messages.Descriptor
}

// ExportSubscriptions writes the subscriptions of a store of which all events were exported, with the sum of that. It
// returns how many there are.
func ExportSubscriptions(ctx context.Context, s SubscriptionSource, of Exported, to io.Writer) (uint64, error) {
	d := s.Descriptor()
	x, w := newFileWriter(to), newWriter()
	head := subscriptionsJSON{
		Version: subscriptionsVersion, Application: d.Application, Partitions: d.Partitions, EventsSHA256: of.SHA256,
	}
	line, err := w.document(&head)
	if err == nil {
		err = x.first(line)
	}
	if err != nil {
		return 0, err
	}
	names, err := s.SubscriptionNames(ctx)
	for i := 0; err == nil && i < len(names); i++ {
		err = x.subscription(ctx, s, names[i], w)
	}
	if err != nil {
		return 0, err
	}
	_, err = x.end()
	return x.n, err
}

func (x *fileWriter) subscription(ctx context.Context, s storage.Subscriptions, name string, w *writer) error {
	sub, err := s.Subscription(ctx, name)
	if err != nil {
		return err
	}
	for e, err := range storage.AllParked(ctx, s, name, storage.ParkedEvent{}) {
		if err != nil {
			return err
		}
		sub.Parked = append(sub.Parked, e)
	}
	text, err := w.encode(subscriptionOf(&sub))
	if err != nil {
		return err
	}
	return x.numbered("subscription", text)
}

func subscriptionOf(s *storage.Subscription) *subscriptionJSON {
	j := &subscriptionJSON{Name: s.Name, Partition: s.Partition, Workspace: s.Workspace, Kinds: s.Kinds, Stopped: s.Stopped, Next: []positionJSON{}}
	for _, p := range slices.Sorted(maps.Keys(s.Next)) {
		j.Next = append(j.Next, positionJSON{p, s.Next[p]})
	}
	for i := range s.Parked {
		e := &s.Parked[i]
		j.Parked = append(j.Parked, parkedJSON{positionJSON{e.Partition, e.Offset}, e.Reason, e.Tries, e.At})
	}
	return j
}

func (j *subscriptionJSON) read() storage.Subscription {
	s := storage.Subscription{
		Name: j.Name, SubscriptionSource: storage.SubscriptionSource{Partition: j.Partition, Workspace: j.Workspace, Kinds: j.Kinds},
		Stopped: j.Stopped, Next: make(map[messages.PartitionID]uint64, len(j.Next)),
	}
	for _, at := range j.Next {
		s.Next[at.Partition] = at.Offset
	}
	for i := range j.Parked {
		e := &j.Parked[i]
		s.Parked = append(s.Parked, storage.ParkedEvent{Partition: e.Partition, Offset: e.Offset, Reason: e.Reason, Tries: e.Tries, At: e.At})
	}
	return s
}

// ReadSubscriptions reads a file of subscriptions. What is wrong with it is a [*LineError].
func ReadSubscriptions(r io.Reader) (*Subscriptions, error) {
	f, w := newFileReader(r, "subscription"), newWriter()
	content, err := f.first()
	if err != nil {
		return nil, err
	}
	s := &Subscriptions{}
	if err := s.readHead(w, content); err != nil {
		return nil, f.lines.wrong(err)
	}
	for {
		_, value, err := f.next(nil)
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return nil, err
		}
		var j subscriptionJSON
		if err := json.Unmarshal(value, &j); err != nil {
			return nil, f.lines.wrong(err)
		}
		sub := j.read()
		if err := w.mustBe(value, subscriptionOf(&sub)); err != nil {
			return nil, f.lines.wrong(err)
		}
		s.all = append(s.all, sub)
	}
}

func (s *Subscriptions) readHead(w *writer, content []byte) error {
	text := append(slices.Clip(content), '}')
	switch err := json.Unmarshal(text, &s.head); {
	case err != nil || s.head.Version == 0:
		return errNoLine
	case s.head.Version != subscriptionsVersion:
		return fmt.Errorf("version of the file: got %d, want %d", s.head.Version, subscriptionsVersion)
	}
	return w.mustBe(text, &s.head)
}
