package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/partita-go/partita/partition"
)

// ActorStatus is what an actor does, as it is answered.
type ActorStatus struct {
	Group    string `json:"group"`
	Key      string `json:"key"`
	State    string `json:"state"`
	Details  string `json:"details,omitempty"`
	Restarts uint64 `json:"restarts,string"`
	// Restart says what becomes of the actor when it panics, "" of what is no actor.
	Restart string `json:"restart"`
}

// Statuses are those of all actors of an application, as they are answered.
type Statuses struct {
	Application string        `json:"application"`
	Actors      []ActorStatus `json:"actors"`
}

// NewActorStatus returns a status as it is answered.
func NewActorStatus(s *partition.ActorStatus) ActorStatus {
	return ActorStatus{
		Group: s.Group, Key: s.ID, State: s.State.String(), Details: s.Details, Restarts: s.Restarts, Restart: s.Restart,
	}
}

// statuses answers with what all actors do, or with a stream of it: all first, then what changes.
func (a *API) statuses(c *call) error {
	if wantsStream(c.r) {
		return c.streams(nil, a.streamStatuses)
	}
	answer := Statuses{Application: a.descriptor.Application, Actors: []ActorStatus{}}
	for _, s := range a.app.Actors() {
		answer.Actors = append(answer.Actors, NewActorStatus(&s))
	}
	if others := a.options.Others; others != nil {
		answer.Actors = append(answer.Actors, others()...)
	}
	return c.sendJSON(http.StatusOK, jsonType, &answer)
}

// streamStatuses ends when the application is undeployed.
func (a *API) streamStatuses(ctx context.Context, s *stream) error {
	w := a.app.Watcher()
	var news []partition.ActorStatus
	next := func(ctx context.Context) (err error) {
		news, err = w.Next(ctx)
		return err
	}
	for {
		if err := s.await(ctx, next); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		for i := range news {
			if err := s.send(ctx, "", NewActorStatus(&news[i])); err != nil {
				return err
			}
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}
