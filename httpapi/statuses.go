package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

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
	if WantsStream(c.r) {
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

// othersEvery is how often a stream looks at what is no actor, which nobody tells of, at least.
const othersEvery = time.Second

// watched are those who tell what they do, and those who must be asked.
type watched struct {
	watcher *partition.Watcher
	others  func() []ActorStatus // nil if there are none
	every   time.Duration
	// told has what was told of the others.
	told []ActorStatus
}

// next waits for news, and returns them.
func (w *watched) next(ctx context.Context) (news []ActorStatus, err error) {
	for {
		if news, err = w.nextOfActors(ctx); err != nil {
			return nil, err
		}
		if news = append(news, w.newsOfOthers()...); len(news) > 0 {
			return news, nil
		}
	}
}

// nextOfActors returns nothing if the others are to be looked at first.
func (w *watched) nextOfActors(ctx context.Context) (news []ActorStatus, err error) {
	short := ctx
	if w.others != nil {
		var cancel context.CancelFunc
		short, cancel = context.WithTimeout(ctx, w.every)
		defer cancel()
	}
	all, err := w.watcher.Next(short)
	for i := range all {
		news = append(news, NewActorStatus(&all[i]))
	}
	if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		err = nil
	}
	return news, err
}

// newsOfOthers returns what has changed.
func (w *watched) newsOfOthers() (news []ActorStatus) {
	if w.others == nil {
		return nil
	}
	now := w.others()
	for _, s := range now {
		if !slices.Contains(w.told, s) {
			news = append(news, s)
		}
	}
	w.told = now
	return news
}

// streamStatuses ends when the application is undeployed.
func (a *API) streamStatuses(ctx context.Context, s *stream) error {
	w := &watched{watcher: a.app.Watcher(), others: a.options.Others, every: min(othersEvery, a.options.Heartbeat/2)}
	var news []ActorStatus
	next := func(ctx context.Context) (err error) {
		news, err = w.next(ctx)
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
			if err := s.send(ctx, "", news[i]); err != nil {
				return err
			}
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}
