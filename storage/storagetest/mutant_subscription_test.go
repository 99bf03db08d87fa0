package storagetest

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// subscriptionBug is a fault in the subscriptions of a Memory, and the checks that must find
// it. Each hook that is set stands for the method.
type subscriptionBug struct {
	name string
	by   []string

	list   func(*subscriptionMutant, context.Context) ([]string, error)
	read   func(*subscriptionMutant, context.Context, string) (storage.Subscription, error)
	parked func(*subscriptionMutant, context.Context, string, storage.ParkedEvent, int) ([]storage.ParkedEvent, error)
	put    func(*subscriptionMutant, context.Context, storage.Subscription) error
	move   func(*subscriptionMutant, context.Context, storage.SubscriptionMove) error
	delete func(*subscriptionMutant, context.Context, string) error
	// reopened and crashed change what the store holds in between.
	reopened, crashed func(*disk)
}

// subscriptionMutant is a Memory with such a fault.
type subscriptionMutant struct {
	*Memory
	bug *subscriptionBug
}

func (m *subscriptionMutant) SubscriptionNames(ctx context.Context) ([]string, error) {
	if m.bug.list != nil {
		return m.bug.list(m, ctx)
	}
	return m.Memory.SubscriptionNames(ctx)
}

func (m *subscriptionMutant) ParkedEvents(ctx context.Context, name string, after storage.ParkedEvent, limit int) ([]storage.ParkedEvent, error) {
	if m.bug.parked != nil {
		return m.bug.parked(m, ctx, name, after, limit)
	}
	return m.Memory.ParkedEvents(ctx, name, after, limit)
}

func (m *subscriptionMutant) Subscription(ctx context.Context, name string) (storage.Subscription, error) {
	if m.bug.read != nil {
		return m.bug.read(m, ctx, name)
	}
	return m.Memory.Subscription(ctx, name)
}

func (m *subscriptionMutant) PutSubscription(ctx context.Context, s storage.Subscription) error {
	if m.bug.put != nil {
		return m.bug.put(m, ctx, s)
	}
	return m.Memory.PutSubscription(ctx, s)
}

func (m *subscriptionMutant) MoveSubscription(ctx context.Context, move storage.SubscriptionMove) error {
	if m.bug.move != nil {
		return m.bug.move(m, ctx, move)
	}
	return m.Memory.MoveSubscription(ctx, move)
}

func (m *subscriptionMutant) DeleteSubscription(ctx context.Context, name string) error {
	if m.bug.delete != nil {
		return m.bug.delete(m, ctx, name)
	}
	return m.Memory.DeleteSubscription(ctx, name)
}

// subscriptionMutants is the factory of stores with one such bug.
type subscriptionMutants struct {
	MemoryFactory
	bug *subscriptionBug
}

func (f subscriptionMutants) Open(t testing.TB, d messages.Descriptor) storage.Store {
	return &subscriptionMutant{Memory: f.MemoryFactory.Open(t, d).(*Memory), bug: f.bug}
}

func (f subscriptionMutants) Reopen(_ testing.TB, s storage.Store) storage.Store {
	return f.again(s, f.bug.reopened)
}

func (f subscriptionMutants) Crash(_ testing.TB, s storage.Store) storage.Store {
	return f.again(s, f.bug.crashed)
}

func (f subscriptionMutants) again(s storage.Store, change func(*disk)) storage.Store {
	old := s.(*subscriptionMutant)
	if change != nil {
		change(old.disk)
	}
	return &subscriptionMutant{Memory: old.Reopen(), bug: f.bug}
}

// TestRunFindsBugsOfSubscriptions runs the checks that must find each bug, and all of them
// without one.
func TestRunFindsBugsOfSubscriptions(t *testing.T) {
	for _, b := range slices.Concat(putBugs(), moveBugs(), readSubscriptionBugs(), readParkedBugs(), keepBugs()) {
		t.Run(b.name, func(t *testing.T) {
			for _, name := range b.by {
				i := slices.IndexFunc(subscriptionChecks, func(c check) bool { return c.name == name })
				if i < 0 {
					t.Fatalf("no check is called %s", name)
				}
				failure := failureOf(t, subscriptionChecks[i], subscriptionMutants{bug: &b})
				if failure == "" {
					t.Errorf("%s did not find the bug", name)
				}
				t.Logf("%s: %.300s", name, failure)
			}
		})
	}
	for _, c := range subscriptionChecks {
		if failure := failureOf(t, c, subscriptionMutants{bug: &subscriptionBug{}}); failure != "" {
			t.Errorf("%s: %s", c.name, failure)
		}
	}
}

const subscriptionModel = "SubscriptionsAgreeWithMemory"

// puttingOnly is a put of a changed copy.
func puttingOnly(name string, change func(*storage.Subscription), by ...string) subscriptionBug {
	return subscriptionBug{name: name, by: by, put: func(m *subscriptionMutant, ctx context.Context, s storage.Subscription) error {
		c := cloneSubscription(&s)
		change(&c)
		return m.Memory.PutSubscription(ctx, c)
	}}
}

func putBugs() []subscriptionBug {
	return []subscriptionBug{
		{name: "putting again overwrites", by: []string{"PutSubscriptionTwice", subscriptionModel},
			put: func(m *subscriptionMutant, ctx context.Context, s storage.Subscription) error {
				if have, err := m.Memory.Subscription(ctx, s.Name); err == nil && have.Equal(&s.SubscriptionSource) {
					_ = m.Memory.DeleteSubscription(ctx, s.Name)
				}
				return m.Memory.PutSubscription(ctx, s)
			}},
		{name: "another source is taken for the same", by: []string{"PutSubscriptionTwice"},
			put: func(m *subscriptionMutant, ctx context.Context, s storage.Subscription) error {
				if _, err := m.Memory.Subscription(ctx, s.Name); err == nil {
					return nil
				}
				return m.Memory.PutSubscription(ctx, s)
			}},
		puttingOnly("kinds are forgotten", func(s *storage.Subscription) { s.Kinds = nil }, "SubscriptionsAreKept", "PutSubscriptionTwice", "PutSubscriptionRefusesWhatCannotBe"),
		puttingOnly("parked events are forgotten", func(s *storage.Subscription) { s.Parked = nil }, "SubscriptionsAreKept", subscriptionModel),
		puttingOnly("it is not stopped", func(s *storage.Subscription) { s.Stopped = "" }, "SubscriptionsAreKept"),
		puttingOnly("it begins at the start", func(s *storage.Subscription) { s.Next, s.Parked = nil, nil }, "SubscriptionsAreKept", subscriptionModel),
		puttingOnly("positions are cut to the log", func(s *storage.Subscription) {
			for p, next := range s.Next {
				s.Next[p] = min(next, 6)
			}
		}, "PutSubscriptionRefusesWhatCannotBe"),
		puttingOnly("control characters are cut off", func(s *storage.Subscription) { s.Name = strings.TrimRight(s.Name, "\n") }, "SubscriptionNames"),
		puttingOnly("long names are cut", func(s *storage.Subscription) {
			s.Name = s.Name[:min(len(s.Name), storage.MaxSubscriptionName)]
		}, "SubscriptionNames"),
		puttingOnly("kinds are put in order", func(s *storage.Subscription) {
			slices.Sort(s.Kinds)
			s.Kinds = slices.Compact(s.Kinds)
		}, "PutSubscriptionRefusesWhatCannotBe"),
		{name: "what is put is not copied", by: []string{"SubscriptionsAreTheCallersOwn"},
			put: func(m *subscriptionMutant, ctx context.Context, s storage.Subscription) error {
				err := m.Memory.PutSubscription(ctx, s)
				if err == nil {
					m.disk.subscriptions[s.Name] = &s
				}
				return err
			}},
	}
}

// movingOnly is a move of something else than what was given.
func movingOnly(name string, change func(*storage.SubscriptionMove), by ...string) subscriptionBug {
	return subscriptionBug{name: name, by: by, move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
		move.Next = maps.Clone(move.Next)
		change(&move)
		return m.Memory.MoveSubscription(ctx, move)
	}}
}

func moveBugs() []subscriptionBug {
	const all, atomic, rewind = "MoveSubscriptionMovesAll", "MoveSubscriptionIsAtomic", "RewindUnparks"
	return []subscriptionBug{
		movingOnly("nothing is unparked", func(m *storage.SubscriptionMove) { m.Unpark = nil }, all, subscriptionModel),
		movingOnly("nothing is parked", func(m *storage.SubscriptionMove) { m.Park = nil }, all, subscriptionModel),
		movingOnly("it is not stopped", func(m *storage.SubscriptionMove) { m.Stopped = nil }, all, subscriptionModel),
		movingOnly("it is resumed by every move", func(m *storage.SubscriptionMove) {
			if m.Stopped == nil {
				m.Stopped = new("")
			}
		}, all),
		movingOnly("positions stay", func(m *storage.SubscriptionMove) { m.Next = nil }, all, subscriptionModel),
		movingOnly("position 0 is taken for 1", func(m *storage.SubscriptionMove) {
			for p, next := range m.Next {
				m.Next[p] = max(next, 1)
			}
		}, atomic),
		{name: "positions never fall", by: []string{rewind, subscriptionModel},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				have, err := m.Memory.Subscription(ctx, move.Name)
				move.Next = maps.Clone(move.Next)
				for p, next := range move.Next {
					if err == nil && next < have.Position(p) {
						delete(move.Next, p)
					}
				}
				return m.Memory.MoveSubscription(ctx, move)
			}},
		{name: "a rewind leaves what is parked", by: []string{rewind, subscriptionModel},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				before, _ := WholeSubscription(ctx, m.Memory, move.Name)
				err := m.Memory.MoveSubscription(ctx, move)
				if err == nil && len(move.Unpark) == 0 {
					park(m.disk.subscriptions[move.Name], before.Parked)
				}
				return err
			}},
		{name: "a refused move has moved the positions", by: []string{atomic, subscriptionModel},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				err := m.Memory.MoveSubscription(ctx, move)
				if errors.Is(err, storage.ErrSubscription) {
					_ = m.Memory.MoveSubscription(ctx, storage.SubscriptionMove{Name: move.Name, Next: positions{0: 6}})
				}
				return err
			}},
		{name: "a refused move has unparked", by: []string{atomic},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				err := m.Memory.MoveSubscription(ctx, move)
				if errors.Is(err, storage.ErrSubscription) {
					_ = m.Memory.MoveSubscription(ctx, storage.SubscriptionMove{Name: move.Name, Unpark: move.Unpark})
				}
				return err
			}},
		{name: "unparking comes last", by: []string{all, subscriptionModel},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				err := m.Memory.MoveSubscription(ctx, move)
				if err == nil {
					unpark(m.disk.subscriptions[move.Name], move.Unpark)
				}
				return err
			}},
		{name: "an event is parked twice", by: []string{all},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				before, _ := WholeSubscription(ctx, m.Memory, move.Name)
				err := m.Memory.MoveSubscription(ctx, move)
				for i := range move.Park {
					if at, there := find(before.Parked, &move.Park[i]); err == nil && there {
						s := m.disk.subscriptions[move.Name]
						s.Parked = slices.Insert(s.Parked, at, before.Parked[at])
					}
				}
				return err
			}},
		{name: "unparking needs the reason", by: []string{all},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				before, _ := WholeSubscription(ctx, m.Memory, move.Name)
				move.Unpark = slices.DeleteFunc(slices.Clone(move.Unpark), func(e storage.ParkedEvent) bool { return !slices.Contains(before.Parked, e) })
				return m.Memory.MoveSubscription(ctx, move)
			}},
		{name: "reasons are cut in the middle of a character", by: []string{"SubscriptionReasonsAreCut"},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				err := m.Memory.MoveSubscription(ctx, move)
				if err == nil && move.Stopped != nil {
					m.disk.subscriptions[move.Name].Stopped = (*move.Stopped)[:min(len(*move.Stopped), storage.MaxSubscriptionReason)]
				}
				return err
			}},
	}
}

func readSubscriptionBugs() []subscriptionBug {
	return []subscriptionBug{
		{name: "the list is in reverse", by: []string{"SubscriptionsAreKept", "DeleteSubscription", subscriptionModel},
			list: func(m *subscriptionMutant, ctx context.Context) ([]string, error) {
				all, err := m.Memory.SubscriptionNames(ctx)
				slices.Reverse(all)
				return all, err
			}},
		{name: "the list goes by letters", by: []string{"SubscriptionsAreKept"},
			list: func(m *subscriptionMutant, ctx context.Context) ([]string, error) {
				all, err := m.Memory.SubscriptionNames(ctx)
				slices.SortFunc(all, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
				return all, err
			}},
		{name: "what is read is the store's", by: []string{"SubscriptionsAreTheCallersOwn"},
			read: func(m *subscriptionMutant, ctx context.Context, name string) (storage.Subscription, error) {
				s, err := m.Memory.Subscription(ctx, name)
				if err == nil {
					s.Next = m.disk.subscriptions[name].Next
				}
				return s, err
			}},
		{name: "a name is found by its beginning", by: []string{"SubscriptionsAreKept"},
			read: func(m *subscriptionMutant, ctx context.Context, name string) (storage.Subscription, error) {
				return m.Memory.Subscription(ctx, strings.TrimRight(name, " \x00"))
			}},
		{name: "reading does not look at its context", by: []string{"SubscriptionsObeyContexts"},
			read: func(m *subscriptionMutant, _ context.Context, name string) (storage.Subscription, error) {
				return m.Memory.Subscription(context.Background(), name)
			}},
		{name: "a closed store is read", by: []string{"ClosedStoreRefusesSubscriptions"},
			list: func(m *subscriptionMutant, ctx context.Context) ([]string, error) {
				all, err := m.Memory.SubscriptionNames(ctx)
				if errors.Is(err, storage.ErrClosed) {
					return nil, nil
				}
				return all, err
			}},
	}
}

func keepBugs() []subscriptionBug {
	const survive, deletion = "SubscriptionsSurvive", "DeleteSubscription"
	unparkAll := func(d *disk) {
		for _, s := range d.subscriptions {
			s.Parked = nil
		}
	}
	return []subscriptionBug{
		{name: "parked events do not survive", by: []string{survive}, reopened: unparkAll},
		{name: "parked events do not survive a crash", by: []string{survive}, crashed: unparkAll},
		{name: "the last move does not survive a crash", by: []string{survive}, crashed: func(d *disk) {
			for _, s := range d.subscriptions {
				for p := range s.Next {
					s.Next[p]--
				}
			}
		}},
		{name: "a deletion does not survive", by: []string{deletion, survive}, reopened: func(d *disk) {
			for name := range d.subscriptions {
				d.subscriptions[name+"0"] = d.subscriptions[name]
			}
		}},
		{name: "deleting what is not there is harmless", by: []string{deletion, "SubscriptionsAreKept"},
			delete: func(m *subscriptionMutant, ctx context.Context, name string) error {
				if err := m.Memory.DeleteSubscription(ctx, name); !errors.Is(err, storage.ErrNoSubscription) {
					return err
				}
				return nil
			}},
		{name: "what begins with the name is deleted too", by: []string{deletion},
			delete: func(m *subscriptionMutant, ctx context.Context, name string) error {
				err := m.Memory.DeleteSubscription(ctx, name)
				maps.DeleteFunc(m.disk.subscriptions, func(k string, _ *storage.Subscription) bool { return err == nil && strings.HasPrefix(k, name) })
				return err
			}},
		{name: "a deletion is only a stop", by: []string{deletion},
			delete: func(m *subscriptionMutant, ctx context.Context, name string) error {
				return m.Memory.MoveSubscription(ctx, storage.SubscriptionMove{Name: name, Stopped: new("deleted")})
			}},
		{name: "deleting does not look at its context", by: []string{"SubscriptionsObeyContexts"},
			delete: func(m *subscriptionMutant, _ context.Context, name string) error {
				return m.Memory.DeleteSubscription(context.Background(), name)
			}},
		{name: "moves write back all subscriptions", by: []string{"SubscriptionsMoveAtOnce"},
			move: func(m *subscriptionMutant, ctx context.Context, move storage.SubscriptionMove) error {
				before, err := WholeSubscriptions(ctx, m.Memory)
				if err != nil {
					return err
				}
				for range 100 {
					runtime.Gosched()
				}
				err = m.Memory.MoveSubscription(ctx, move)
				m.disk.mu.Lock()
				defer m.disk.mu.Unlock()
				for i := range before {
					if s := &before[i]; s.Name != move.Name {
						m.disk.subscriptions[s.Name] = s
					}
				}
				return err
			}},
	}
}
