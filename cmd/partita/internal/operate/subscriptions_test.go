package operate

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// ageless replaces how long ago events were registered, in words, which differs from run to
// run.
func ageless(text string) string {
	text = regexp.MustCompile(` +[0-9,]+h[0-9]{2}m`).ReplaceAllString(text, " AGO")
	return regexp.MustCompile(`lag +behind`).ReplaceAllString(text, "lag AGO")
}

// keepSubscriptions makes subscriptions in a store of newStore: "mails" of workspace 4 has
// handled one event, parked another and has one before it; "outbox" reads all.
func keepSubscriptions(t testing.TB, dir string) {
	t.Helper()
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	for _, sub := range []storage.Subscription{
		{
			Name: "mails", SubscriptionSource: storage.SubscriptionSource{Workspace: new(messages.WSID(4)), Kinds: []messages.WSKind{shop}},
			Next:   map[messages.PartitionID]uint64{0: 3},
			Parked: []storage.ParkedEvent{{Partition: 0, Offset: 2, Reason: "no such address", Tries: 10, At: 1_700_000_000_000_000}},
		},
		{Name: "outbox", Next: map[messages.PartitionID]uint64{0: 4, 1: 2}, Stopped: "partition 1, offset 2, after 10 tries: \x1b[2Jno"},
	} {
		check(t, s.PutSubscription(limit(t), sub))
	}
	check(t, s.Close(limit(t)))
}

// subscriptions runs a command about them, and returns its one document.
func subscriptions(t *testing.T, args ...string) map[string]any {
	t.Helper()
	return run(t, append(append([]string{"subscriptions"}, args...), "--json")...).has(t, exitFine).json(t)
}

// lane returns one of a subscription that was shown.
func lane(t *testing.T, shown map[string]any, i int) map[string]any {
	t.Helper()
	return shown["subscription"].(map[string]any)["lanes"].([]any)[i].(map[string]any)
}

// TestSubscriptionsAreShown as text, without what would steer the terminal, and nothing is
// changed.
func TestSubscriptionsAreShown(t *testing.T) {
	dir := newStore(t)
	if o := run(t, "subscriptions", "list", "--db", dir).has(t, exitFine); o.stdout != "there are no subscriptions\n" {
		t.Errorf("got %q", o.stdout)
	}
	keepSubscriptions(t, dir)
	before := contents(t, dir)
	for verb, want := range map[string]string{
		"list": `
Subscriptions

 name    reads                 state        lag AGO    next  parked  error
---
 mails   workspace 4, kinds 1  not-running    1 AGO       3       1
 outbox  all partitions        stopped        1 AGO  2 logs       0  partition 1, offset 2, after 10 tries: ?[2Jno
`,
		"show": `mails reads workspace 4, kinds 1: not-running, 1 event behind, 1 parked

Logs

 partition  state  next  lag AGO  tries  error
---
         0  ended     3    1 AGO      0
`,
		"parked": `
Parked events

 partition  offset  tries  parked at                    reason
---
         0       2     10  2023-11-14T22:13:20.000000Z  no such address
`,
	} {
		args := []string{"subscriptions", verb, "--db", dir}
		if verb != "list" {
			args = append(args, "--name", "mails")
		}
		if got := ageless(golden(run(t, args...).has(t, exitFine).stdout)); got != want {
			t.Errorf("%s: got:\n%s\nwant:\n%s", verb, got, want)
		}
	}
	shown := subscriptions(t, "show", "--db", dir, "--name", "mails")
	if l := lane(t, shown, 0); l["next_offset"] != "3" || l["lag_events"] != "1" || l["partition"] != 0.0 || shown["verb"] != "show" {
		t.Errorf("got %v", shown)
	}
	if list := subscriptions(t, "list", "--db", dir)["subscriptions"].([]any); len(list) != 2 {
		t.Errorf("got %v", list)
	}
	if parked := subscriptions(t, "parked", "--db", dir, "--name", "outbox")["parked"].([]any); len(parked) != 0 {
		t.Errorf("got %v", parked)
	}
	untouched(t, dir, before)
}

// TestSubscriptionsAreChanged in a store that nobody has open: each change is what the next
// start finds, and no other file is changed.
func TestSubscriptionsAreChanged(t *testing.T) {
	dir := newStore(t)
	keepSubscriptions(t, dir)
	stands := func(name string) storage.Subscription {
		s, err := open(limit(t), dir)
		check(t, err)
		sub, err := s.Subscription(limit(t), name)
		check(t, err)
		check(t, closeStore(s))
		return sub
	}
	for _, tt := range []struct {
		args string
		want func(mails, outbox storage.Subscription) bool
	}{
		{"pause --name mails", func(m, _ storage.Subscription) bool { return m.Stopped == "paused" }},
		{"resume --name outbox", func(m, o storage.Subscription) bool { return o.Stopped == "" && m.Stopped == "paused" }},
		{"drop --name mails --partition 0 --offset 2", func(m, _ storage.Subscription) bool { return m.ParkedCount == 0 && m.Next[0] == 3 }},
		{"rewind --name outbox --partition 0 --offset 1", func(_, o storage.Subscription) bool { return o.Next[0] == 1 && o.Next[1] == 2 }},
		{"skip --name outbox", func(_, o storage.Subscription) bool { return o.Next[0] == 4 && o.Next[1] == 3 }},
		{"skip --name mails", func(m, _ storage.Subscription) bool { return m.Next[0] == 4 }},
	} {
		before := bytesOf(t, dir)
		o := run(t, strings.Fields("subscriptions "+tt.args+" --db "+dir)...).has(t, exitFine)
		if o.stderr != "" || o.stdout == "" {
			t.Errorf("%s: got stdout %q, stderr %q", tt.args, o.stdout, o.stderr)
		}
		if !tt.want(stands("mails"), stands("outbox")) {
			t.Errorf("%s: got %+v, %+v", tt.args, stands("mails"), stands("outbox"))
		}
		onlySubscriptions(t, dir, before)
	}
	before := bytesOf(t, dir)
	if d := subscriptions(t, "delete", "--db", dir, "--name", "mails"); d["verb"] != "delete" || d["name"] != "mails" || d["store"] != dir {
		t.Errorf("got %v", d)
	}
	onlySubscriptions(t, dir, before)
	run(t, "verify", "--db", dir).has(t, exitFine)
	before = bytesOf(t, dir)
	for args, want := range map[string]string{
		"show --name mails": "no such subscription", "pause --name mails": "no such subscription", "delete --name mails": "no such subscription",
		"drop --name outbox --partition 0 --offset 1": "event is not parked", "rewind --name outbox --partition 0 --offset 5": "beyond the next event",
		"rewind --name outbox --partition 2 --offset 1": "does not read partition 2",
	} {
		run(t, strings.Fields("subscriptions "+args+" --db "+dir)...).fails(t, exitBlind, want, dir)
	}
	same(t, before, bytesOf(t, dir))
}

// TestSubscriptionsAreChangedWithoutState: the change makes state.db anew, as a start of the application does, and
// shows that.
func TestSubscriptionsAreChangedWithoutState(t *testing.T) {
	dir := newStore(t)
	keepSubscriptions(t, dir)
	remove(t, dir, "state.db")
	o := run(t, "subscriptions", "pause", "--db", dir, "--name", "mails").has(t, exitFine)
	if !strings.Contains(o.progress, "rebuild state.db: ") {
		t.Errorf("got progress %q", o.progress)
	}
	if s := subscriptions(t, "show", "--db", dir, "--name", "mails")["subscription"].(map[string]any); s["state"] != "paused" {
		t.Errorf("got %v", s)
	}
}

// onlySubscriptions fails the test unless subscriptions.db was changed, and no byte of another file: the end of
// log.db is written again as it is.
func onlySubscriptions(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	const name = "subscriptions.db"
	now := bytesOf(t, dir)
	if now[name] == before[name] {
		t.Error("it is as it was")
	}
	before[name] = now[name]
	same(t, before, now)
}

// TestSubscriptionIsDamaged: the list says so, and has the others; it can be deleted, and is made
// anew.
func TestSubscriptionIsDamaged(t *testing.T) {
	dir := newStore(t)
	keepSubscriptions(t, dir)
	spoilPosition(t, dir)
	run(t, "subscriptions", "show", "--db", dir, "--name", "mails").fails(t, exitBlind, "mails")
	all := subscriptions(t, "list", "--db", dir)["subscriptions"].([]any)
	if len(all) != 2 {
		t.Fatalf("got %v", all)
	}
	mails, outbox := all[0].(map[string]any), all[1].(map[string]any)
	if mails["name"] != "mails" || mails["state"] != "failed" || !strings.Contains(fmt.Sprint(mails["error"]), "damaged") {
		t.Errorf("got %v", mails)
	}
	if outbox["name"] != "outbox" || outbox["state"] != "stopped" || outbox["error"] != nil {
		t.Errorf("got %v", outbox)
	}
	run(t, "subscriptions", "delete", "--db", dir, "--name", "mails").has(t, exitFine)
	if list := subscriptions(t, "list", "--db", dir)["subscriptions"].([]any); len(list) != 1 {
		t.Errorf("got %v", list)
	}
}

// TestReadsIsNotKnown: it is not said of a damaged subscription that it reads all partitions.
func TestReadsIsNotKnown(t *testing.T) {
	s := httpapi.Subscription{State: "failed"}
	if got := reads(&s); got != "?" {
		t.Errorf("got %q", got)
	}
	s.Source.Partition = new(messages.PartitionID(2))
	if got := reads(&s); got != "partition 2" {
		t.Errorf("got %q", got)
	}
}

// TestSubscriptionsOfALockedStore: the error says who can be asked instead.
func TestSubscriptionsOfALockedStore(t *testing.T) {
	dir := newStore(t)
	keepSubscriptions(t, dir)
	lock(t, dir)
	for _, args := range [][]string{{"list"}, {"delete", "--name", "mails"}} {
		run(t, append(append([]string{"subscriptions"}, args...), "--db", dir)...).fails(t, exitBlind, "a running process has it open", "--url", dir)
	}
}

// named is a subscription of everything.
func named(name string) storage.Subscription { return storage.Subscription{Name: name} }
