package operate

import (
	"fmt"
	"strings"
	"time"

	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
	"github.com/partita-go/partita/httpapi"
)

// subscriptionsResult is what a command about subscriptions has found or done, in the words
// of its JSON. Subscriptions and parked events are as the HTTP API has them.
type subscriptionsResult struct {
	Command string `json:"command"`
	Verb    string `json:"verb"`
	// Store or URL is where the subscriptions are.
	Store         string                 `json:"store,omitempty"`
	URL           string                 `json:"url,omitempty"`
	Name          string                 `json:"name,omitempty"`
	Subscriptions []httpapi.Subscription `json:"subscriptions,omitzero"`
	Subscription  *httpapi.Subscription  `json:"subscription,omitempty"`
	Parked        []httpapi.ParkedEvent  `json:"parked,omitzero"`
	// Replayed are the events that the handler has taken, of those that were parked.
	Replayed []httpapi.ParkedEvent `json:"replayed,omitzero"`
}

// notRunning is the state of a subscription whose handler is in another program, or in none, as the HTTP API has it.
const notRunning = "not-running"

// outcomes say what a verb has done.
var outcomes = map[string]string{
	verbReplay: "the handler has taken the event",
	verbDrop:   "the event is parked no more, and was not handled",
	verbPause:  "delivers nothing more until it is resumed",
	verbResume: "delivers",
	verbRewind: "goes on with the event named",
	verbSkip:   "goes on behind the last event of each log",
	verbDelete: "was deleted",
}

func (r *subscriptionsResult) text(c *console.Console) {
	switch {
	case r.Verb == verbList:
		r.listText(c)
	case r.Verb == verbShow:
		showText(c, r.Subscription)
	case r.Verb == verbParked:
		r.parkedText(c)
	case r.Verb == verbResume && r.Subscription.State == notRunning:
		c.Say("%s: is paused no more. Nothing runs it now: it goes on when the program that has its handler does", r.Name)
	case r.Replayed != nil:
		c.Say("%s: the handler has taken %s", r.Name, human.Counted(len(r.Replayed), "event"))
	default:
		c.Say("%s: %s", r.Name, outcomes[r.Verb])
	}
}

func (r *subscriptionsResult) listText(c *console.Console) {
	if len(r.Subscriptions) == 0 {
		c.Say("there are no subscriptions")
		return
	}
	t := table.New(table.Left("name"), table.Left("reads"), table.Left("state"), table.Right("lag"), table.Right("behind"), table.Right("next"),
		table.Right("parked"), table.Left("error"))
	for i := range r.Subscriptions {
		s := &r.Subscriptions[i]
		t.Row(s.Name, reads(s), s.State, s.LagEvents, since(s.LagSeconds), position(s.Lanes), s.Parked, trouble(s))
	}
	c.Draw("Subscriptions", t)
}

// position is where a subscription stands, if it reads one log.
func position(lanes []httpapi.Lane) any {
	if len(lanes) == 1 {
		return lanes[0].Next
	}
	return fmt.Sprintf("%d logs", len(lanes))
}

// trouble is why a subscription has stopped, or its last error.
func trouble(s *httpapi.Subscription) string {
	if s.State == "stopped" {
		return s.Stopped
	}
	return s.Error
}

// since is how long ago something was, in words.
func since(seconds float64) string {
	if seconds == 0 {
		return ""
	}
	return human.Duration(time.Duration(seconds * float64(time.Second)))
}

// reads says what a subscription reads. Of one that is damaged that may not be known.
func reads(s *httpapi.Subscription) string {
	text := "all partitions"
	switch {
	case s.Source.Partition != nil:
		text = fmt.Sprintf("partition %d", *s.Source.Partition)
	case s.Source.Workspace != nil:
		text = fmt.Sprintf("workspace %d", *s.Source.Workspace)
	case len(s.Lanes) == 0:
		text = "?"
	}
	if len(s.Source.Kinds) > 0 {
		text += ", kinds " + strings.Trim(fmt.Sprint(s.Source.Kinds), "[]")
	}
	return text
}

func showText(c *console.Console, s *httpapi.Subscription) {
	c.Say("%s reads %s: %s, %s behind, %s parked", s.Name, reads(s), s.State, human.Counted(s.LagEvents, "event"), human.Count(s.Parked))
	if text := trouble(s); text != "" {
		c.Say("%s", text)
	}
	t := table.New(table.Right("partition"), table.Left("state"), table.Right("next"), table.Right("lag"), table.Right("behind"), table.Right("tries"), table.Left("error"))
	for i := range s.Lanes {
		l := &s.Lanes[i]
		t.Row(uint64(l.Partition), l.State, l.Next, l.LagEvents, since(l.LagSeconds), uint64(l.Tries), l.Error)
	}
	c.Draw("Logs", t)
}

func (r *subscriptionsResult) parkedText(c *console.Console) {
	if len(r.Parked) == 0 {
		c.Say("%s: nothing is parked", r.Name)
		return
	}
	t := table.New(table.Right("partition"), table.Right("offset"), table.Right("tries"), table.Left("parked at"), table.Left("reason"))
	for i := range r.Parked {
		e := &r.Parked[i]
		t.Row(uint64(e.Partition), e.Offset, uint64(e.Tries), e.ParkedAt, e.Reason)
	}
	c.Draw("Parked events", t)
}
