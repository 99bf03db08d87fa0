package tests

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// truth is what a store held before it was damaged.
type truth struct {
	plogs   [][]messages.Event
	wlogs   map[messages.WSID][]messages.Event
	records map[messages.WSID][]storage.Row
	// named are appends that have a deduplication id, with what their answer was.
	named         []answered
	subscriptions []storage.Subscription
	// whole has the logs that were read to their ends without an error.
	whole map[string]bool
}

// readTruth reads everything of so many workspaces. Each read goes as far as it can:
// the error is what ended it.
func readTruth(ctx context.Context, store storage.Store, workspaces int) (truth, []error) {
	tr := truth{wlogs: make(map[messages.WSID][]messages.Event), records: make(map[messages.WSID][]storage.Row), whole: make(map[string]bool)}
	var errs []error
	read := func(log string, events iter.Seq2[messages.Event, error]) (all []messages.Event) {
		for e, err := range events {
			if err != nil {
				errs = append(errs, err)
				return all
			}
			all = append(all, e)
		}
		tr.whole[log] = true
		return all
	}
	for p := range messages.PartitionID(store.Descriptor().Partitions) {
		tr.plogs = append(tr.plogs, read(plogName(p), store.PLog(ctx, p, 1)))
	}
	for ws := range messages.WSID(workspaces) {
		if events := read(wlogName(ws), store.WLog(ctx, ws, 1)); events != nil {
			tr.wlogs[ws] = events
		}
		for row, err := range store.Records(ctx, ws, storage.RecordRange{Seq: seqInvoice}) {
			if err != nil {
				errs = append(errs, err)
				break
			}
			tr.records[ws] = append(tr.records[ws], row)
		}
	}
	all, err := storagetest.WholeSubscriptions(ctx, store.(storage.Subscriptions))
	if err != nil {
		errs = append(errs, err)
	}
	tr.subscriptions = all
	return tr, errs
}

func plogName(p messages.PartitionID) string { return fmt.Sprintf("partition %d", p) }
func wlogName(ws messages.WSID) string       { return fmt.Sprintf("workspace %d", ws) }

// wrongs are the elements of a store that are not in the truth, and the logs that end early in silence:
// worse than errors.
func (want truth) wrongs(got truth) []string {
	var all []string
	for p, events := range got.plogs {
		name := plogName(messages.PartitionID(p))
		all = append(all, wrong(name, events, want.plogs[p], got.whole[name])...)
	}
	for ws, events := range want.wlogs {
		all = append(all, wrong(wlogName(ws), got.wlogs[ws], events, got.whole[wlogName(ws)])...)
	}
	for ws, rows := range got.records {
		// Rows need not be a prefix: an error ends the read where it is met.
		for _, row := range rows {
			if !slices.ContainsFunc(want.records[ws], func(r storage.Row) bool { return reflect.DeepEqual(r, row) }) {
				all = append(all, fmt.Sprintf("workspace %d: got row %+v", ws, row))
			}
		}
	}
	for _, s := range got.subscriptions {
		if !slices.ContainsFunc(want.subscriptions, func(w storage.Subscription) bool { return reflect.DeepEqual(s, w) }) {
			all = append(all, fmt.Sprintf("got subscription %+v", s))
		}
	}
	return all
}

// wrong tells the elements that are not a prefix of what is right, or all of it where nobody was told an
// error.
func wrong(where string, got, want []messages.Event, whole bool) []string {
	var all []string
	if whole && len(got) < len(want) {
		all = append(all, fmt.Sprintf("%s: got %d of %d events, and no error", where, len(got), len(want)))
	}
	for i := range got {
		if i >= len(want) || !reflect.DeepEqual(got[i], want[i]) {
			all = append(all, fmt.Sprintf("%s: element %d: got %+v", where, i, got[i]))
		}
	}
	return all
}

// lost reports whether anything that a reader is told of is missing.
func (want truth) lost(got truth) bool {
	return !reflect.DeepEqual(got.plogs, want.plogs) || !reflect.DeepEqual(got.wlogs, want.wlogs) ||
		!reflect.DeepEqual(got.subscriptions, want.subscriptions)
}

// compare makes sure that a store has all of it, and nothing else.
func (want truth) compare(t testing.TB, store storage.Store) {
	t.Helper()
	got, errs := readTruth(limit(t), store, len(want.wlogs))
	check(t, errors.Join(errs...))
	if wrong := want.wrongs(got); len(wrong) > 0 || want.lost(got) {
		t.Errorf("the store differs: %v", wrong)
	}
}

// verdict is what a damage came to.
type verdict struct {
	// by is what noticed it first, "" if nothing did.
	by string
	// wrong is what was wrong and not told.
	wrong []string
}

// judge looks at a damaged site in every way there is. Whatever it is told must be an
// error or right; whatever it writes must go on from there. Where nothing, `partita verify`
// included, has noticed anything, all must be as it was. Whatever it came to, no lock is left
// behind.
func (s *site) judge(t testing.TB, want truth) (v verdict) {
	t.Helper()
	ctx, cancel := context.WithTimeout(limit(t), time.Minute)
	defer cancel()
	report, err := bolt.Verify(ctx, s.dir, verify.Options{})
	if err != nil || report.FaultCount > 0 {
		v.by = "verify"
	}
	defer func() { s.judgeReopened(ctx, &v) }()
	store, err := bolt.Open(ctx, s.dir, s.app.Descriptor, s.bolt)
	if err != nil {
		v.by = "open"
		return v
	}
	parts := partition.NewAppParts(system, partition.Options{})
	d := &deployment{parts: parts, store: store}
	defer func() {
		if err := store.Close(ctx); err != nil {
			v.wrong = append(v.wrong, fmt.Sprintf("it does not close: %v", err))
		}
		_ = parts.Close(ctx)
	}()
	if d.app, err = parts.Deploy(ctx, s.app, store); err != nil {
		v.by = "open"
		return v
	}
	ready := d.app.Ready(ctx)
	got, errs := readTruth(ctx, store, len(want.wlogs))
	v.wrong = want.wrongs(got)
	got.named = want.named
	if v.by == "" && len(errs) == 0 && ready == nil && !reflect.DeepEqual(got, want) {
		v.wrong = append(v.wrong, "something is lost, and not even verify tells")
	}
	errored, writes := d.goOn(ctx, want)
	v.wrong = append(v.wrong, writes...)
	unmoved, moves := moveAll(ctx, store, want.subscriptions)
	v.wrong = append(v.wrong, moves...)
	if errored = errored || unmoved || ready != nil || len(errs) > 0; errored {
		v.by = "read"
	} else if want.lost(got) {
		v.wrong = append(v.wrong, "events are lost, and nobody who reads is told")
	}
	if ctx.Err() != nil {
		v.wrong = append(v.wrong, "it hangs")
	}
	return v
}

// judgeReopened opens a site once more: it opens, or what it is refused for is the damage.
func (s *site) judgeReopened(ctx context.Context, v *verdict) {
	store, err := bolt.Open(ctx, s.dir, s.app.Descriptor, s.bolt)
	if err == nil {
		err = store.Close(ctx)
	}
	if err != nil && (v.by == "" || errors.Is(err, storage.ErrLocked)) {
		v.wrong = append(v.wrong, fmt.Sprintf("it does not open again: %v", err))
	}
}

// goOn writes to each workspace, and repeats what was appended with an id. It reports
// whether anybody was told an error, and what was wrong.
func (d *deployment) goOn(ctx context.Context, want truth) (errored bool, wrong []string) {
	for _, a := range want.named {
		each, err := a.begun.send(ctx, d.app, nil)
		switch {
		case err != nil:
			errored = true
		case !each[0].Repeated || !reflect.DeepEqual(a.begun.promised(each), a.acked):
			wrong = append(wrong, fmt.Sprintf("%s: repeated %v: got %+v, want %+v", a.begun.Bodies[0], each[0].Repeated, each[0], *a.acked[0]))
		}
	}
	for ws, events := range want.wlogs {
		tx, err := commit(ctx, d.app, ws, seqInvoice, messages.SeqCRecordID)
		if err != nil {
			errored = true
			continue
		}
		if want := events[len(events)-1].WLogOffset + 1; tx.WLogOffset() != want {
			wrong = append(wrong, fmt.Sprintf("workspace %d: got offset %d, want %d", ws, tx.WLogOffset(), want))
		}
		for _, n := range tx.Numbers() {
			if want := lastOf(events, n.Seq) + 1; n.Number != want {
				wrong = append(wrong, fmt.Sprintf("workspace %d: got number %d of sequence %d, want %d", ws, n.Number, n.Seq, want))
			}
		}
	}
	return errored, wrong
}

// moveAll moves each subscription one event back, and reads it. It reports whether anybody was
// told an error, and what was wrong.
func moveAll(ctx context.Context, store storage.Subscriptions, all []storage.Subscription) (errored bool, wrong []string) {
	for _, want := range all {
		move := storage.SubscriptionMove{Name: want.Name, Next: make(map[messages.PartitionID]uint64)}
		before := want.Next
		want.Next, want.Parked = move.Next, slices.Clone(want.Parked)
		for p, next := range before {
			move.Next[p] = next - 1
			want.Parked = slices.DeleteFunc(want.Parked, func(e storage.ParkedEvent) bool { return e.Partition == p && e.Offset == next-1 })
		}
		err := store.MoveSubscription(ctx, move)
		var got storage.Subscription
		if err == nil {
			got, err = storagetest.WholeSubscription(ctx, store, want.Name)
		}
		switch {
		case errors.Is(err, storage.ErrNoSubscription):
			wrong = append(wrong, fmt.Sprintf("subscription %s is said not to be there", want.Name))
		case err != nil:
			errored = true
		case !reflect.DeepEqual(got, want):
			wrong = append(wrong, fmt.Sprintf("got subscription %+v, want %+v", got, want))
		}
	}
	return errored, wrong
}

// lastOf is the last number of a sequence that events gave out.
func lastOf(events []messages.Event, seq messages.SeqID) messages.Number {
	for _, e := range slices.Backward(events) {
		for _, n := range slices.Backward(e.Numbers) {
			if n.Seq == seq {
				return n.Number
			}
		}
	}
	return 0
}

// damagedSite makes a site with events before and after the checkpoint, and returns what
// it holds: of each workspace 4 times as many events as rounds, one of those of a round
// with a deduplication id. There are subscriptions on several pages.
func damagedSite(t testing.TB, workspaces, rounds int) (*site, truth) {
	t.Helper()
	s := newSite(t, 3, neverFlushed())
	s.dir = scratch(t)
	var named []answered
	for round := range rounds {
		d := s.run(t)
		for i := range 3 * workspaces {
			must(commitRecord(limit(t), d.app, messages.WSID(i%workspaces)))(t)
		}
		for ws := range messages.WSID(workspaces) {
			b := &begun{Workspace: ws, ID: idOf(uint64(ws), uint64(round)), Bodies: []string{fmt.Sprintf("%d of %d", round, ws)}}
			named = append(named, answered{b, b.promised(must(b.send(limit(t), d.app, nil))(t))})
		}
		if round < rounds-1 {
			d.stop(t)
		} else {
			d.crash(t)
		}
	}
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{})
	for i := range 40 {
		check(t, store.PutSubscription(limit(t), storage.Subscription{
			Name: fmt.Sprintf("subscription %02d", i), SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{kindShop}},
			Stopped: strings.Repeat("s", 100), Next: map[messages.PartitionID]uint64{0: 4, 1: 3},
			Parked: []storage.ParkedEvent{{Partition: 0, Offset: 3, Reason: strings.Repeat("p", 100+i), Tries: 2, At: 5}, {Partition: 1, Offset: 1}},
		}))
	}
	tr, errs := readTruth(limit(t), store, workspaces)
	check(t, errors.Join(errs...))
	check(t, store.Close(limit(t)))
	tr.named = named
	s.tighten(t)
	return s, tr
}
