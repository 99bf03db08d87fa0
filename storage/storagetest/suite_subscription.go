package storagetest

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// subscriptionChecks are skipped for stores that keep no subscriptions.
var subscriptionChecks = []check{
	{"SubscriptionsAreKept", anyLevel, checkSubscriptionsKept},
	{"SubscriptionsAreTheCallersOwn", anyLevel, checkSubscriptionsOwn},
	{"PutSubscriptionTwice", anyLevel, checkPutTwice},
	{"PutSubscriptionRefusesWhatCannotBe", anyLevel, checkPutRefuses},
	{"MoveSubscriptionMovesAll", eachLevel, checkMove},
	{"MoveSubscriptionIsAtomic", anyLevel, checkMoveRefused},
	{"RewindUnparks", anyLevel, checkRewind},
	{"ParkedEventsInPages", anyLevel, checkParkedPages},
	{"DeleteSubscription", anyLevel, checkDelete},
	{"SubscriptionsSurvive", anyLevel, checkSubscriptionsSurvive},
	{"SubscriptionReasonsAreCut", anyLevel, checkReasons},
	{"SubscriptionNames", anyLevel, checkNames},
	{"SubscriptionsMoveAtOnce", anyLevel, checkMoveRace},
	{"SubscriptionsObeyContexts", anyLevel, checkSubscriptionContext},
	{"ClosedStoreRefusesSubscriptions", anyLevel, checkSubscriptionsClosed},
	{"SubscriptionsAgreeWithMemory", anyLevel, checkSubscriptionModel},
}

// subscribing opens a store in which partition 0 has five events, two of them of workspace
// 3, and partition 1 has two.
func (e *env) subscribing() storage.Subscriptions {
	e.Helper()
	e.open()
	s := e.subscriptions()
	p := e.take(0)
	for _, ws := range []messages.WSID{3, 6, 3, 6, 6} {
		e.append(p, Spec{Workspace: ws})
	}
	q := e.take(1)
	e.append(q, Spec{Workspace: 4}, Spec{Workspace: 4})
	e.flush(p, 3)
	return s
}

// subscriptions returns the store as one that keeps subscriptions.
func (e *env) subscriptions() storage.Subscriptions {
	e.Helper()
	return optional[storage.Subscriptions](e)
}

type positions = map[messages.PartitionID]uint64

// whole is a subscription with everything in it.
func whole(name string) storage.Subscription {
	return storage.Subscription{
		Name:               name,
		SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{KindPerson, KindCompany}},
		Stopped:            "paused",
		Next:               positions{0: 5, 1: 3},
		Parked: []storage.ParkedEvent{
			{Partition: 0, Offset: 2, Reason: "no such address", Tries: 7, At: -4},
			{Partition: 0, Offset: 4, Reason: "", Tries: math.MaxUint32, At: math.MaxInt64},
			{Partition: 1, Offset: 1, Reason: "\x00\xff", At: math.MinInt64},
		},
	}
}

func ofPartition(name string, p messages.PartitionID) storage.Subscription {
	return storage.Subscription{Name: name, SubscriptionSource: storage.SubscriptionSource{Partition: &p}}
}

func ofWorkspace(name string, ws messages.WSID) storage.Subscription {
	return storage.Subscription{Name: name, SubscriptionSource: storage.SubscriptionSource{Workspace: &ws}}
}

// put makes subscriptions that must be accepted.
func (e *env) putSubscriptions(subs ...storage.Subscription) {
	e.Helper()
	for i := range subs {
		if err := e.subscriptions().PutSubscription(e.Context(), cloneSubscription(&subs[i])); err != nil {
			e.Fatalf("put %q: %v", subs[i].Name, err)
		}
	}
}

func (e *env) move(m storage.SubscriptionMove) {
	e.Helper()
	if err := e.subscriptions().MoveSubscription(e.Context(), m); err != nil {
		e.Fatalf("move %+v: %v", m, err)
	}
}

// subscribed fails unless the store has exactly these, with all that they have parked.
func (e *env) subscribed(when string, want ...storage.Subscription) {
	e.Helper()
	s := e.subscriptions()
	got, err := s.SubscriptionNames(e.Context())
	var names []string
	for i := range want {
		names = append(names, want[i].Name)
	}
	if err != nil || !slices.Equal(got, names) {
		e.Fatalf("%s: got subscriptions %q, %v, want %q", when, got, err, names)
	}
	for i := range want {
		one, err := WholeSubscription(e.Context(), s, want[i].Name)
		if err != nil {
			e.Fatalf("%s: %q: %v", when, want[i].Name, err)
		}
		if !sameSubscription(&one, &want[i]) {
			e.Fatalf("%s:\n got %+v\nwant %+v", when, one, want[i])
		}
		e.parkedInPages(when, want[i].Name, want[i].Parked)
	}
}

// sameSubscription does not tell empty from nil, nor position 1 from none.
func sameSubscription(a, b *storage.Subscription) bool {
	x, y := cloneSubscription(a), cloneSubscription(b)
	for _, s := range []*storage.Subscription{&x, &y} {
		for p, next := range s.Next {
			if next == 1 {
				delete(s.Next, p)
			}
		}
	}
	return reflect.DeepEqual(x, y)
}

// checkSubscriptionsKept: what is put is read, in order of the names' bytes; what is not
// there is not.
func checkSubscriptionsKept(e *env) {
	s := e.subscribing()
	e.subscribed("before the first")
	_, err := s.Subscription(e.Context(), "a")
	e.isOneOf("a subscription before the first", err, storage.ErrNoSubscription)
	e.isOneOf("a move before the first", s.MoveSubscription(e.Context(), storage.SubscriptionMove{Name: "a"}), storage.ErrNoSubscription)
	e.isOneOf("a deletion before the first", s.DeleteSubscription(e.Context(), "a"), storage.ErrNoSubscription)
	all := []storage.Subscription{
		ofPartition("Z", 1), whole("a"), ofWorkspace("a b", math.MaxUint64), ofWorkspace("ab", 3), ofPartition("ä/1", 0),
	}
	all[3].Next = positions{0: 3}
	all[3].Kinds = []messages.WSKind{KindPerson}
	for _, i := range []int{3, 0, 4, 2, 1} {
		e.putSubscriptions(all[i])
	}
	e.subscribed("after putting them", all...)
	for _, name := range []string{"A", "aa", "a ", "", "a\x00"} {
		_, err := s.Subscription(e.Context(), name)
		e.isOneOf("subscription "+name, err, storage.ErrNoSubscription)
		e.isOneOf("move of "+name, s.MoveSubscription(e.Context(), storage.SubscriptionMove{Name: name}), storage.ErrNoSubscription)
		e.isOneOf("deletion of "+name, s.DeleteSubscription(e.Context(), name), storage.ErrNoSubscription)
	}
	e.subscribed("after asking for others", all...)
}

// checkSubscriptionsOwn: the store shares nothing with its callers.
func checkSubscriptionsOwn(e *env) {
	s := e.subscribing()
	spoil := func(sub *storage.Subscription) {
		sub.Kinds[0], sub.Next[0], sub.Parked[0].Reason = 99, 1, "changed"
	}
	given := whole("own")
	if err := s.PutSubscription(e.Context(), given); err != nil {
		e.Fatalf("put: %v", err)
	}
	spoil(&given)
	e.subscribed("after the caller changed what it gave", whole("own"))
	one, err := s.Subscription(e.Context(), "own")
	if err == nil {
		one.Parked, err = s.ParkedEvents(e.Context(), "own", storage.ParkedEvent{}, 1)
	}
	if err != nil {
		e.Fatalf("read: %v", err)
	}
	spoil(&one)
	e.subscribed("after the caller changed what it got", whole("own"))
}

// checkPutTwice: putting what is there changes nothing, and another source is refused.
func checkPutTwice(e *env) {
	s := e.subscribing()
	e.putSubscriptions(whole("x"), ofPartition("p", 1), ofWorkspace("w", 3))
	again := whole("x")
	again.Next, again.Parked, again.Stopped = positions{1: 2}, nil, ""
	e.putSubscriptions(again, ofPartition("p", 1), ofWorkspace("w", 3))
	want := []storage.Subscription{ofPartition("p", 1), ofWorkspace("w", 3), whole("x")}
	e.subscribed("after putting them again", want...)
	fewer := whole("x")
	fewer.Kinds = fewer.Kinds[:1]
	for _, other := range []storage.Subscription{
		fewer, {Name: "x"}, ofPartition("x", 0), ofPartition("p", 0), ofWorkspace("p", 1), {Name: "p"}, ofWorkspace("w", 6), ofPartition("w", 0),
	} {
		e.isOneOf("another source", s.PutSubscription(e.Context(), other), storage.ErrSubscription)
	}
	e.subscribed("after the refusals", want...)
}

// checkPutRefuses: what contradicts the application, itself or the logs is refused.
func checkPutRefuses(e *env) {
	s := e.subscribing()
	parked := func(p messages.PartitionID, offset uint64) []storage.ParkedEvent {
		return []storage.ParkedEvent{{Partition: p, Offset: offset}}
	}
	both := ofPartition("x", 0)
	both.Workspace = ofWorkspace("x", 3).Workspace
	for what, sub := range map[string]storage.Subscription{
		"two sources":          both,
		"no such partition":    ofPartition("x", 3),
		"no such kind":         {SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{9}}},
		"kinds out of order":   {SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{2, 1}}},
		"a kind twice":         {SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{1, 1}}},
		"position 0":           {Next: positions{0: 0}},
		"beyond the log":       {Next: positions{0: 7}},
		"beyond an empty log":  {Next: positions{2: 2}},
		"position of another":  {SubscriptionSource: ofPartition("x", 0).SubscriptionSource, Next: positions{1: 1}},
		"position of no one":   {Next: positions{3: 1}},
		"beyond its workspace": {SubscriptionSource: ofWorkspace("x", 3).SubscriptionSource, Next: positions{0: 4}},
		"another's workspace":  {SubscriptionSource: ofWorkspace("x", 3).SubscriptionSource, Next: positions{1: 1}},
		"empty workspace":      {SubscriptionSource: ofWorkspace("x", 9).SubscriptionSource, Next: positions{0: 2}},
		"parked too far":       {Next: positions{0: 3}, Parked: parked(0, 3)},
		"parked at offset 0":   {Next: positions{0: 3}, Parked: parked(0, 0)},
		"parked, no position":  {Parked: parked(0, 1)},
		"parked of another":    {SubscriptionSource: ofPartition("x", 0).SubscriptionSource, Parked: parked(1, 1)},
		"parked of no one":     {Parked: parked(3, 1)},
	} {
		sub.Name = "x"
		e.isOneOf(what, s.PutSubscription(e.Context(), sub), storage.ErrSubscription)
	}
	e.subscribed("after the refusals")
	ends := []storage.Subscription{ofPartition("p", 0), ofPartition("q", 2), ofWorkspace("w", 3)}
	ends[0].Next, ends[1].Next, ends[2].Next = positions{0: 6}, positions{2: 1}, positions{0: 3}
	e.putSubscriptions(ends...)
	e.subscribed("at the ends of their logs", ends...)
}

// checkMove: a move changes what it says and nothing else.
func checkMove(e *env) {
	e.subscribing()
	sub, other := whole("x"), whole("x y")
	e.putSubscriptions(sub, other)
	step := func(what string, m storage.SubscriptionMove, change func()) {
		m.Name = "x"
		e.move(m)
		change()
		e.subscribed(what, sub, other)
	}
	step("nothing", storage.SubscriptionMove{}, func() {})
	step("one position", storage.SubscriptionMove{Next: positions{0: 6}}, func() { sub.Next[0] = 6 })
	step("a first position", storage.SubscriptionMove{Next: positions{2: 1}}, func() {})
	step("resumed", storage.SubscriptionMove{Stopped: new("")}, func() { sub.Stopped = "" })
	five := storage.ParkedEvent{Partition: 0, Offset: 5, Reason: "late", Tries: 1, At: 9}
	step("parked", storage.SubscriptionMove{Park: []storage.ParkedEvent{five}}, func() {
		sub.Parked = slices.Insert(sub.Parked, 2, five)
	})
	five.Reason, five.Tries = "again", 2
	step("parked again", storage.SubscriptionMove{Park: []storage.ParkedEvent{five}, Unpark: []storage.ParkedEvent{five}}, func() {
		sub.Parked[2] = five
	})
	step("unparked by place alone", storage.SubscriptionMove{Unpark: []storage.ParkedEvent{
		{Partition: 0, Offset: 2}, {Partition: 0, Offset: 2}, {Partition: 0, Offset: 3}, {Partition: 7, Offset: 1},
	}}, func() { sub.Parked = sub.Parked[1:] })
	six := storage.ParkedEvent{Partition: 1, Offset: 2, Reason: "all at once"}
	step("all at once", storage.SubscriptionMove{
		Next: positions{0: 6, 1: 3}, Stopped: new("too many"), Park: []storage.ParkedEvent{six}, Unpark: sub.Parked[:2],
	}, func() {
		sub.Stopped = "too many"
		sub.Parked = append(slices.Clone(sub.Parked[2:]), six)
	})
}

// checkMoveRefused: a move that is refused in one point changes nothing.
func checkMoveRefused(e *env) {
	s := e.subscribing()
	sub, ws := whole("x"), ofWorkspace("w", 3)
	e.putSubscriptions(sub, ws)
	park := func(p messages.PartitionID, offset uint64) []storage.ParkedEvent {
		return []storage.ParkedEvent{{Partition: 0, Offset: 1}, {Partition: p, Offset: offset}}
	}
	for what, m := range map[string]storage.SubscriptionMove{
		"position 0":            {Next: positions{0: 6, 1: 0}},
		"beyond the log":        {Next: positions{0: 6, 1: 4}},
		"of no one":             {Next: positions{0: 6, 3: 1}},
		"parked at the place":   {Next: positions{0: 6}, Park: park(0, 6)},
		"parked at the old one": {Park: park(1, 3)},
		"parked behind rewind":  {Next: positions{0: 2}, Park: park(0, 2)},
		"parked of no one":      {Next: positions{0: 6}, Park: park(3, 1)},
	} {
		m.Name, m.Stopped, m.Unpark = "x", new("x"), sub.Parked[:1]
		e.isOneOf(what, s.MoveSubscription(e.Context(), m), storage.ErrSubscription)
	}
	for _, next := range []positions{{0: 4}, {1: 1}} {
		e.isOneOf("a workspace's", s.MoveSubscription(e.Context(), storage.SubscriptionMove{Name: "w", Next: next}), storage.ErrSubscription)
	}
	e.subscribed("after the refusals", ws, sub)
	e.move(storage.SubscriptionMove{Name: "w", Next: positions{0: 3}, Park: []storage.ParkedEvent{{Partition: 0, Offset: 2}}})
}

// checkRewind: what will be delivered again is parked no more.
func checkRewind(e *env) {
	e.subscribing()
	sub := whole("x")
	e.putSubscriptions(sub, whole("x0"))
	e.move(storage.SubscriptionMove{Name: "x", Next: positions{0: 4}})
	sub.Next[0], sub.Parked = 4, slices.Delete(sub.Parked, 1, 2)
	e.subscribed("after a rewind to what is parked", sub, whole("x0"))
	e.move(storage.SubscriptionMove{Name: "x", Next: positions{0: 2, 1: 1}, Park: []storage.ParkedEvent{{Partition: 0, Offset: 1}}})
	sub.Next, sub.Parked = positions{0: 2}, []storage.ParkedEvent{{Partition: 0, Offset: 1}}
	e.subscribed("after a rewind of both", sub, whole("x0"))
	e.reopen()
	e.subscribed("after reopening", sub, whole("x0"))
}

// checkReasons: reasons are kept up to their limit, in whole characters.
func checkReasons(e *env) {
	e.subscribing()
	long := strings.Repeat("ä", storage.MaxSubscriptionReason)
	cut := strings.Repeat("ä", storage.MaxSubscriptionReason/2)
	sub := whole("x")
	sub.Stopped, sub.Parked[0].Reason, sub.Parked[1].Reason = long, "x"+long, cut
	e.putSubscriptions(sub)
	sub.Stopped, sub.Parked[0].Reason = cut, "x"+cut[:len(cut)-2]
	e.subscribed("after putting it", sub)
	e.move(storage.SubscriptionMove{Name: "x", Stopped: new("x" + long), Park: []storage.ParkedEvent{{Partition: 0, Offset: 1, Reason: long}}})
	sub.Stopped = "x" + cut[:len(cut)-2]
	sub.Parked = append([]storage.ParkedEvent{{Partition: 0, Offset: 1, Reason: cut}}, sub.Parked...)
	e.subscribed("after moving it", sub)
}

// checkNames: a name is text of some length, and any text will do.
func checkNames(e *env) {
	s := e.subscribing()
	longest := strings.Repeat("n", storage.MaxSubscriptionName)
	for what, name := range map[string]string{
		"empty": "", "too long": longest + "n", "not UTF-8": "a\xff", "a zero byte": "a\x00b", "a line": "a\n", "C1": "a\u0085",
	} {
		e.isOneOf("a name, "+what, s.PutSubscription(e.Context(), storage.Subscription{Name: name}), storage.ErrSubscription)
	}
	e.putSubscriptions(ofPartition(longest, 0), ofPartition(" ", 0), ofPartition("日本/../x", 1))
	e.subscribed("after putting them", ofPartition(" ", 0), ofPartition(longest, 0), ofPartition("日本/../x", 1))
}
