package partition

import (
	"context"
	"io"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// shown is an actor whose status everybody sees.
type shown interface {
	PID() *actor.PID
	Standing() *actors.Standing
	Interrupted(actors.Failure)
}

// show lets others see the statuses of actors.
func (a *App) show(more ...shown) {
	a.reshow(func(all []shown) []shown { return append(all, more...) })
}

func (a *App) showLanes(lanes []*actors.Lane) {
	more := make([]shown, len(lanes))
	for i, lane := range lanes {
		more[i] = lane
	}
	a.show(more...)
}

// hide ends that: whoever watches sees their last statuses.
func (a *App) hide(gone func(shown) bool) {
	a.reshow(func(all []shown) []shown { return slices.DeleteFunc(all, gone) })
}

func (a *App) hideLanes(lanes []*actors.Lane) {
	gone := make(map[shown]bool, len(lanes))
	for _, lane := range lanes {
		gone[lane] = true
	}
	a.hide(func(s shown) bool { return gone[s] })
}

func (a *App) reshow(change func([]shown) []shown) {
	for {
		before := a.shown.Load()
		all := change(slices.Clone(*before))
		if a.shown.CompareAndSwap(before, &all) {
			break
		}
	}
	a.changes.tell()
}

// allShown returns a list that nobody changes.
func (a *App) allShown() []shown {
	if all := a.shown.Load(); all != nil {
		return *all
	}
	return nil
}

// Actors returns the statuses of all actors, as of their last changes: partitions by id, then command processors and the
// lanes of subscriptions as they were started. Leaves are seen at their parents.
func (a *App) Actors() []ActorStatus {
	all := make([]ActorStatus, 0, len(a.allShown()))
	for _, s := range a.allShown() {
		all = append(all, *s.Standing().Status())
	}
	return all
}

// Watcher tells what actors do, to one goroutine.
type Watcher struct {
	app *App
	// list is what was watched last, seen is what was told of each.
	list *[]shown
	seen []*ActorStatus
}

// Watcher returns one that has told nothing yet.
func (a *App) Watcher() *Watcher { return &Watcher{app: a} }

// Next returns the statuses of all actors when it is called first, in the order of [App.Actors], and then those that have
// changed since it has returned: it waits until there are some. Whoever calls it seldom misses changes that another one
// has followed, and never the last one. No actor waits for it. It returns io.EOF when all that is left was told: every
// partition has ended; or the error of ctx, after which it may be called again.
func (w *Watcher) Next(ctx context.Context) ([]ActorStatus, error) {
	for ctx.Err() == nil {
		changed := w.app.changes.await()
		ended := w.app.ended()
		if news := w.look(); len(news) > 0 {
			return news, nil
		}
		if ended {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// ended reports whether every partition has.
func (a *App) ended() bool {
	return !slices.ContainsFunc(a.partitions, func(p *actors.Partition) bool {
		return p.Standing().Status().State != messages.StateTerminated
	})
}

// look returns what has changed, the last of those that are not watched any more included.
func (w *Watcher) look() (news []ActorStatus) {
	if list := w.app.shown.Load(); list != w.list {
		news = w.news()
		w.turnTo(list)
	}
	return append(news, w.news()...)
}

// news returns what has changed of those in the list.
func (w *Watcher) news() (news []ActorStatus) {
	if w.list == nil {
		return nil
	}
	for i, s := range *w.list {
		if now := s.Standing().Status(); now != w.seen[i] {
			w.seen[i] = now
			news = append(news, *now)
		}
	}
	return news
}

// turnTo watches another list.
func (w *Watcher) turnTo(list *[]shown) {
	before := make(map[shown]*ActorStatus, len(w.seen))
	for i, seen := range w.seen {
		before[(*w.list)[i]] = seen
	}
	w.list, w.seen = list, make([]*ActorStatus, len(*list))
	for i, s := range *list {
		w.seen[i] = before[s]
	}
}
