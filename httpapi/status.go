package httpapi

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// partitionJSON is where a partition stands.
type partitionJSON struct {
	Partition messages.PartitionID `json:"partition"`
	State     string               `json:"state"`
	Details   string               `json:"details,omitempty"`
	Epoch     messages.Epoch       `json:"epoch,string"`
	Last      messages.PLogOffset  `json:"last_offset,string"`
	Replayed  uint64               `json:"replayed,string"`
	Restarts  uint64               `json:"restarts,string"`
	Error     string               `json:"error,omitempty"`
	Displaced string               `json:"displaced,omitempty"`
	Full      string               `json:"full,omitempty"`
	// NearlyUsed are sequences that end soon.
	NearlyUsed []nearlyUsedJSON `json:"nearly_used,omitempty"`
}

// nearlyUsedJSON is a sequence of which more than 90 % is used.
type nearlyUsedJSON struct {
	Workspace messages.WSID   `json:"workspace,string"`
	Sequence  messages.SeqID  `json:"sequence"`
	Name      string          `json:"name"`
	Period    string          `json:"period,omitempty"`
	Last      messages.Number `json:"last,string"`
	Largest   messages.Number `json:"largest,string"`
}

func (a *API) partitions(c *call) error {
	var answer struct {
		Application string          `json:"application"`
		Partitions  []partitionJSON `json:"partitions"`
	}
	answer.Application = a.descriptor.Application
	for _, s := range a.app.Status() {
		answer.Partitions = append(answer.Partitions, a.status(c, &s))
	}
	return c.sendJSON(http.StatusOK, jsonType, &answer)
}

func (a *API) partition(c *call) error {
	p, err := c.partition()
	if err != nil {
		return err
	}
	sequencer, err := a.app.Sequencer(p)
	if err != nil {
		return err
	}
	s := sequencer.Status()
	return c.sendJSON(http.StatusOK, jsonType, a.status(c, &s))
}

func (a *API) status(c *call, s *messages.PartitionStatus) partitionJSON {
	j := partitionJSON{
		Partition: s.Partition, State: s.State.String(), Details: s.Details, Epoch: s.Epoch, Last: s.Last, Replayed: s.Replayed, Restarts: s.Restarts,
	}
	if s.Err != nil {
		j.Error = s.Err.Error()
	}
	if s.Displaced != nil {
		j.Displaced = s.Displaced.Error()
	}
	if s.Full != nil {
		j.Full = s.Full.Error()
	}
	for _, n := range s.NearlyUsed {
		j.NearlyUsed = append(j.NearlyUsed, nearlyUsedJSON{n.Workspace, n.Seq, n.Name, dateText(n.Period), n.Last, n.Largest})
	}
	// A status is as of its last change. Of a log that cannot be read it is all there is.
	if end, err := a.reader.End(c.r.Context(), s.Partition); err == nil {
		j.Last = end
	}
	return j
}

// okJSON answers those who only want to know.
type okJSON struct {
	Status string `json:"status"`
}

func (a *API) healthy(c *call) error { return c.sendJSON(http.StatusOK, jsonType, okJSON{"ok"}) }

// ready says whether every partition takes events.
func (a *API) ready(c *call) error {
	if a.stopping.Err() != nil {
		return &problem{kind: notReady, detail: "the server is stopping", retryAfter: retrySoon}
	}
	for _, s := range a.app.Status() {
		if s.State != messages.StateNormal && s.State != messages.StateAlarming || errors.Is(s.Err, messages.ErrClock) {
			return &problem{kind: notReady, detail: notReadyText(&s), retryAfter: retrySoon}
		}
		if s.Full != nil {
			return &problem{kind: notReady, detail: "refusing appends: " + storage.ErrFull.Error(), retryAfter: retryLater}
		}
	}
	return c.sendJSON(http.StatusOK, jsonType, okJSON{"ok"})
}

// notReadyText says why a partition takes no events.
func notReadyText(s *messages.PartitionStatus) string {
	text := fmt.Sprintf("partition %d is %v", s.Partition, s.State)
	if s.State == messages.StateInitializing && s.Details != "" {
		text += ": " + s.Details
	}
	return text
}

// NotReady returns a handler for a server that has no application to serve yet, as while it opens the store: so it can
// listen at once, and whoever looks after it sees that it lives, and what it does. It answers /healthz, and everything
// else with the problem not-ready, whose detail is what why returns. That is called for each request, by many
// goroutines.
func NotReady(why func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			refuse(w, r, &problem{kind: notReady, detail: why(), retryAfter: retrySoon})
			return
		}
		c := outside(w, r)
		if err := c.sendJSON(http.StatusOK, jsonType, okJSON{"ok"}); err != nil {
			c.fail(err)
		}
	})
}
