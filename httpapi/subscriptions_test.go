package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition/partitiontest"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
)

// changes are those of subscriptions, and what each needs to be done to "mails".
var changes = []struct{ verb, body string }{
	{"pause", `{}`},
	{"resume", `{}`},
	{"drop", `{"partition": 2, "offset": "2"}`},
	{"skip", `{}`},
	{"rewind", `{"partition": 2, "offset": "1"}`},
}

// faults of the store, and how they are answered.
var faults = []struct {
	err  error
	want *problemKind
}{
	{&storage.DamagedError{Where: "subscriptions.db", Cause: errors.New("flipped")}, damaged},
	{storage.ErrClosed, unavailable},
	{context.DeadlineExceeded, timedOut},
}

func (r *rig) failOnce(op storagetest.Op, err error) {
	r.store.Plant(storagetest.Fault{Op: op, Do: storagetest.Fail(err), Times: 1})
}

// keep makes a subscription of workspace 42 that does not run: one event was handled, one is
// parked, and all others are to come.
func (r *rig) keep(name string) {
	r.t.Helper()
	check(r.t, r.put(name, 2))
}

// put makes a subscription of workspace 42, unless it is there, that stands behind an event which
// is parked.
func (r *rig) put(name string, parked uint64) error {
	return r.store.Inner().(storage.Subscriptions).PutSubscription(r.ctx, storage.Subscription{
		Name: name, SubscriptionSource: storage.SubscriptionSource{Workspace: new(messages.WSID(42))},
		Next:   map[messages.PartitionID]uint64{2: parked + 1},
		Parked: []storage.ParkedEvent{{Partition: 2, Offset: parked, Reason: "no such address", Tries: 10, At: 1}},
	})
}

// answersOfSubscriptions gets each answer that the document has of subscriptions, but for
// those of timeouts and guards. Workspace 42 has events.
func (r *rig) answersOfSubscriptions() {
	r.t.Helper()
	r.keep("mails")
	for path, op := range map[string]storagetest.Op{
		"": storagetest.OpSubscriptionNames, "/mails": storagetest.OpSubscription, "/mails/parked": storagetest.OpParkedEvents,
	} {
		target := "/v1/subscriptions" + path
		r.get(target).has(http.StatusOK)
		r.get(target+"?form=1").problem(malformed, "form")
		for _, fault := range faults[:2] {
			r.failOnce(op, fault.err)
			r.get(target).problem(fault.want, "")
		}
	}
	r.get("/v1/subscriptions/none").problem(notFound, "name")
	r.get("/v1/subscriptions/none/parked").problem(notFound, "name")
	for _, c := range changes {
		r.wrongChanges(c.verb, c.body)
		r.faultyChanges("mails", c.verb, c.body)
		r.change("mails", c.verb, c.body).has(http.StatusOK)
	}
	r.answersOfReplay()
	r.answersOfDelete()
	bare := newRigOver(r.t, Options{}, partitiontest.Options{
		Over: func(f *storagetest.Faulty) (storage.Store, error) { return f, nil },
	})
	bare.handler = r.contract.watch(r.t, bare.api)
	bare.get("/v1/subscriptions").problem(notFound, "")
}

// wrongChanges are refused, whatever the subscription is.
func (r *rig) wrongChanges(verb, body string) {
	r.t.Helper()
	r.change("none", verb, body).problem(notFound, "name")
	r.change("mails", verb, `{"partition": `).problem(malformed, "")
	r.change("mails", verb, strings.Replace(strings.Replace(body, "}", `, "form": 1}`, 1), "{,", "{", 1)).problem(invalidChange, "form")
	r.change("mails", verb, `"`+strings.Repeat("x", 4096)+`"`).problem(tooLarge, "")
	r.do(http.MethodPost, "/v1/subscriptions/mails/"+verb, body, "Content-Type", "text/plain").problem(wrongType, "Content-Type")
}

// faultyChanges change nothing.
func (r *rig) faultyChanges(name, verb, body string) {
	r.t.Helper()
	for _, fault := range faults {
		r.failOnce(storagetest.OpMoveSubscription, fault.err)
		r.change(name, verb, body).problem(fault.want, "")
	}
}

func (r *rig) answersOfReplay() {
	r.t.Helper()
	const body = `{"partition": 2, "offset": "1"}`
	r.wrongChanges("replay", body)
	r.keep("rests")
	r.change("rests", "replay", changes[2].body).problem(notRunning, "")
	m := new(mailer)
	m.fails(1)
	s := r.subscribe("runs", m.handle)
	r.settles("runs", messages.LaneWaiting)
	check(r.t, s.Pause(r.ctx)) // or its lane would store positions
	r.change("runs", "replay", body).problem(notHandled, "")
	m.fails()
	r.faultyChanges("runs", "replay", body)
	r.change("runs", "replay", body).has(http.StatusOK)
	r.change("runs", "replay", body).problem(notFound, "offset")
}

func (r *rig) answersOfDelete() {
	r.t.Helper()
	remove := func() answer { return r.do(http.MethodDelete, "/v1/subscriptions/mails", "") }
	for _, fault := range faults {
		r.failOnce(storagetest.OpDeleteSubscription, fault.err)
		remove().problem(fault.want, "")
	}
	remove().has(http.StatusOK)
	remove().problem(notFound, "name")
	r.do(http.MethodDelete, "/v1/subscriptions/mails?form=1", "").problem(malformed, "form")
}
