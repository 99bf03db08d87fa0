package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// Subscription is where a subscription stands, as it is answered.
type Subscription struct {
	Name   string             `json:"name"`
	Source SubscriptionSource `json:"source"`
	State  string             `json:"state"`
	// Stopped says why it delivers nothing.
	Stopped    string  `json:"stopped,omitempty"`
	Error      string  `json:"error,omitempty"`
	LagEvents  uint64  `json:"lag_events,string"`
	LagSeconds float64 `json:"lag_seconds"`
	Parked     uint64  `json:"parked,string"`
	Delivered  uint64  `json:"delivered,string"`
	Lanes      []Lane  `json:"lanes"`
}

// SubscriptionSource is what a subscription reads: all partitions if it has neither a
// partition nor a workspace. Of a damaged one, which has no lanes, it may not be known.
type SubscriptionSource struct {
	Partition *messages.PartitionID `json:"partition,omitempty"`
	Workspace *messages.WSID        `json:"workspace,string,omitempty"`
	Kinds     []messages.WSKind     `json:"workspace_kinds,omitempty"`
}

// Lane is where a subscription stands in one log.
type Lane struct {
	Partition  messages.PartitionID `json:"partition"`
	State      string               `json:"state"`
	Next       uint64               `json:"next_offset,string"`
	LagEvents  uint64               `json:"lag_events,string"`
	LagSeconds float64              `json:"lag_seconds"`
	Tries      uint32               `json:"tries"`
	Error      string               `json:"error,omitempty"`
}

// NewSubscription returns a subscription's status as it is answered.
func NewSubscription(s *partition.SubscriptionStatus) Subscription {
	j := Subscription{
		Name: s.Name, Source: SubscriptionSource(s.Source),
		State: s.State.String(), Stopped: s.Stopped, Error: textOf(s.Err), LagEvents: s.Lag, LagSeconds: s.Behind.Seconds(),
		Parked: uint64(s.Parked), Delivered: s.Delivered, Lanes: []Lane{},
	}
	for i := range s.Lanes {
		l := &s.Lanes[i]
		j.Lanes = append(j.Lanes, Lane{
			Partition: l.Partition, State: l.State.String(), Next: l.Next, LagEvents: l.Lag, LagSeconds: l.Behind.Seconds(),
			Tries: l.Tries, Error: textOf(l.Err),
		})
	}
	return j
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What a subscription's answer takes, about, besides its texts.
const (
	subscriptionSize = 300
	laneSize         = 150
)

func sizeOfSubscription(j *Subscription) int {
	size := subscriptionSize + len(j.Name) + len(j.Stopped) + len(j.Error)
	for i := range j.Lanes {
		size += laneSize + len(j.Lanes[i].Error)
	}
	return size
}

func parseName(name string) (string, error) { return name, storage.ValidateSubscriptionName(name) }

// subscription returns the name in the path.
func (c *call) subscription() (string, error) { return inPath(c, "name", parseName) }

// withSubscription does something with the subscription of the path. A damaged one can be
// kept under a name that no other can have.
func (c *call) withSubscription(do func(name string) error) error {
	_, invalid := c.subscription()
	err := do(c.r.PathValue("name"))
	if invalid != nil && errors.Is(err, storage.ErrNoSubscription) {
		return invalid
	}
	return err
}

func (a *API) subscriptionStatus(c *call) error {
	return c.withSubscription(func(name string) error {
		status, err := a.subscriptions.Status(c.r.Context(), name)
		if err != nil {
			return err
		}
		return c.sendJSON(http.StatusOK, jsonType, NewSubscription(&status))
	})
}

// parseAfterName takes any name: the last one of a page can be that of a damaged subscription.
func parseAfterName(name string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("%w: the name is empty", storage.ErrSubscription)
	}
	return name, nil
}

// linkAfter is the page behind a position.
func (c *call) linkAfter(last string) string {
	query := url.Values{paramAfter: {last}}
	c.keep(query, paramLimit)
	return c.link(query)
}

func (a *API) listSubscriptions(c *call) error {
	limit, err := c.whole(paramLimit, DefaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	last, err := inQuery(c, paramAfter, parseAfterName)
	if err != nil {
		return err
	}
	page, size := Page[Subscription]{Results: []Subscription{}}, 0
	for status, err := range a.subscriptions.List(c.r.Context(), last) {
		if err != nil && len(page.Results) == 0 {
			return err
		}
		if err != nil || page.isFull(c, limit, size) {
			page.Next = new(c.linkAfter(last))
			break
		}
		j := NewSubscription(&status)
		page.Results = append(page.Results, j)
		size += sizeOfSubscription(&j)
		last = j.Name
	}
	return c.sendJSON(http.StatusOK, jsonType, &page)
}

// ParkedEvent is an event that a subscription has given up, as it is answered.
type ParkedEvent struct {
	Partition messages.PartitionID `json:"partition"`
	Offset    uint64               `json:"offset,string"`
	Reason    string               `json:"reason"`
	Tries     uint32               `json:"tries"`
	ParkedAt  string               `json:"parked_at"`
}

// NewParkedEvent returns a parked event as it is answered.
func NewParkedEvent(e *partition.ParkedEvent) ParkedEvent {
	return ParkedEvent{e.Partition, e.Offset, e.Reason, e.Tries, timeText(e.At)}
}

// parkedSize is what it takes, about, besides its reason.
const parkedSize = 120

// place is a parked event's position in the list: partition and offset.
func place(e *partition.ParkedEvent) string {
	return e.Partition.String() + "-" + strconv.FormatUint(e.Offset, 10)
}

// parsePlace reads what place has written.
func parsePlace(text string) (e partition.ParkedEvent, err error) {
	p, offset, _ := strings.Cut(text, "-")
	if e.Partition, err = messages.ParsePartitionID(p); err == nil {
		e.Offset, err = parseOffset(offset)
	}
	if err != nil {
		err = fmt.Errorf("got %.40q, want a partition and an offset with a hyphen between them: %w", text, err)
	}
	return e, err
}

// parseOffset reads an offset of a log, whether that is a partition's or a workspace's.
func parseOffset(text string) (uint64, error) {
	offset, err := messages.ParsePLogOffset(text)
	return uint64(offset), err
}

func (a *API) parked(c *call) error {
	name, err := c.subscription()
	if err != nil {
		return err
	}
	limit, err := c.whole(paramLimit, DefaultLimit, 1, maxLimit)
	if err != nil {
		return err
	}
	after, err := inQuery(c, paramAfter, parsePlace)
	if err != nil {
		return err
	}
	page, size := Page[ParkedEvent]{Results: []ParkedEvent{}}, 0
	for e, err := range a.subscriptions.Parked(c.r.Context(), name, after) {
		if err != nil {
			return err
		}
		if page.isFull(c, limit, size) {
			page.Next = new(c.linkAfter(place(&after)))
			break
		}
		page.Results = append(page.Results, NewParkedEvent(&e))
		size += parkedSize + len(e.Reason)
		after = e
	}
	return c.sendJSON(http.StatusOK, jsonType, &page)
}
