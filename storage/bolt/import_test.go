package bolt

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/intake"
	"github.com/partita-go/partita/storage/verify"
)

// toImport makes the nth event of a workspace, which has a number.
func toImport(ws messages.WSID, n int, at messages.Timestamp) messages.Event {
	number := messages.Number(999 + n)
	return messages.Event{
		Workspace: ws, WorkspaceKind: testKind, WLogOffset: messages.WLogOffset(n), RegisteredAt: at,
		Numbers: []messages.SequenceNumber{{Seq: testSeq, Number: number}}, DedupID: messages.DedupID{byte(n), byte(ws)},
	}
}

func each(events ...messages.Event) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for i := range events {
			if !yield(events[i], nil) {
				return
			}
		}
	}
}

// An import without room is refused, keeps what it has, and goes on with more room.
func TestImportWithoutRoom(t *testing.T) {
	to := filepath.Join(t.TempDir(), "new")
	d := testDescriptor(2, messages.TrustNone)
	var events []messages.Event
	for n := 1; n <= 64; n++ {
		e := toImport(messages.WSID(n%2), (n+1)/2, messages.Timestamp(n))
		e.Body = make([]byte, 1<<19)
		events = append(events, e)
	}
	result, err := Import(t.Context(), to, d, each(events...), ImportOptions{Store: Options{MaxSize: 24 << 20, MmapSize: 16 << 20}})
	expect.ErrorIs(t, err, storage.ErrFull)
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no store", err)
	}
	id := result.ID
	result, err = Import(t.Context(), to, d, each(events...), ImportOptions{})
	expect.NoError(t, err)
	if result.Events != 64 || result.Found == 0 || result.Found == 64 || result.ID != id {
		t.Errorf("got %+v, want it to go on", result)
	}
	report, err := Verify(t.Context(), to, verify.Options{})
	expect.NoError(t, errors.Join(err, report.Err()))
}

// An import does not go on under a descriptor that has less than that of the attempt before, whatever the options say.
func TestImportAgainWithLess(t *testing.T) {
	to := filepath.Join(t.TempDir(), "new")
	older := testDescriptor(2, messages.TrustNone)
	newer := older.Normalized()
	newer.Kinds = append(newer.Kinds, messages.Kind{ID: testKind + 1, Name: "archive"})
	wrong := toImport(1, 1, 1)
	wrong.WorkspaceKind = 9
	_, err := Import(t.Context(), to, newer, each(toImport(2, 1, 1), wrong), ImportOptions{})
	expect.ErrorIs(t, err, storage.ErrInvalidEvent)
	_, err = Import(t.Context(), to, older, each(toImport(2, 1, 1)), ImportOptions{Store: Options{AcceptNewer: true}})
	expect.ErrorIs(t, err, messages.ErrDescriptor)
	_, err = Import(t.Context(), to, newer, each(toImport(2, 1, 1)), ImportOptions{})
	expect.NoError(t, err)
}

// What is wrong with events is found, at once or in the end, and there is no store then.
func TestImportOfWrongEvents(t *testing.T) {
	d := testDescriptor(2, messages.TrustNone)
	first, second := toImport(2, 1, 5), toImport(2, 2, 5)
	change := func(e messages.Event, change func(*messages.Event)) messages.Event {
		change(&e)
		return e
	}
	together := change(first, func(e *messages.Event) { e.Together = 1 })
	joined := change(second, func(e *messages.Event) { e.DedupID = messages.DedupID{} })
	for what, c := range map[string]struct {
		events []messages.Event
		want   error
	}{
		"nothing is wrong":     {[]messages.Event{together, joined}, nil},
		"an unknown kind":      {[]messages.Event{change(first, func(e *messages.Event) { e.WorkspaceKind = 9 })}, storage.ErrInvalidEvent},
		"too large":            {[]messages.Event{change(first, func(e *messages.Event) { e.Body = make([]byte, intake.MaxSize) })}, storage.ErrInvalidEvent},
		"a time that falls":    {[]messages.Event{first, change(second, func(e *messages.Event) { e.RegisteredAt = 4 })}, storage.ErrTimeFell},
		"half of an append":    {[]messages.Event{together}, storage.ErrInvalidEvent},
		"another within":       {[]messages.Event{together, toImport(4, 1, 5), joined}, storage.ErrInvalidEvent},
		"an id within":         {[]messages.Event{together, second}, storage.ErrInvalidEvent},
		"a workspace's hole":   {[]messages.Event{first, change(second, func(e *messages.Event) { e.WLogOffset = 3 })}, verify.ErrFaults},
		"a hole in numbers":    {[]messages.Event{first, change(second, func(e *messages.Event) { e.Numbers = []messages.SequenceNumber{{Seq: testSeq, Number: 1002}} })}, verify.ErrFaults},
		"an id that was there": {[]messages.Event{first, change(second, func(e *messages.Event) { e.DedupID = first.DedupID })}, verify.ErrFaults},
		"an event twice":       {[]messages.Event{first, first}, verify.ErrFaults},
	} {
		to := filepath.Join(t.TempDir(), "new")
		_, err := Import(t.Context(), to, d, each(c.events...), ImportOptions{})
		if !errors.Is(err, c.want) || err == nil != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", what, err, c.want)
		}
		if _, err := os.Stat(to); (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// An import that goes on has its own subscriptions and launches, and none of the one before, which has failed.
func TestImportAgainHasItsOwnSubscriptions(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	at := func(name string, next uint64) storage.Subscription {
		return storage.Subscription{Name: name, Next: map[messages.PartitionID]uint64{0: next}}
	}
	of := func(all ...storage.Subscription) func() ([]storage.Subscription, error) {
		return func() ([]storage.Subscription, error) { return all, nil }
	}
	events := []messages.Event{toImport(1, 1, 1), toImport(1, 2, 2), toImport(1, 3, 3), toImport(1, 4, 4)}
	for what, c := range map[string]struct {
		o    ImportOptions
		want []storage.Subscription
	}{
		"others": {ImportOptions{Subscriptions: of(at("mails", 1), at("new", 5)), Launches: []uint32{2}}, []storage.Subscription{at("mails", 1), at("new", 5)}},
		"none":   {ImportOptions{}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "new")
			_, err := Import(t.Context(), to, d, each(events[:3]...), ImportOptions{
				Subscriptions: of(at("mails", 4), at("gone", 1), at("wrong", 99)), Launches: []uint32{1, 3},
			})
			if err == nil {
				t.Fatal("got no error, want one of a position behind the log")
			}
			result, err := Import(t.Context(), to, d, each(events...), c.o)
			expect.NoError(t, err)
			expect.Equal(t, 3, result.Found)
			s := openToRead(t, to)
			defer closeStore(t, s)
			names, err := s.SubscriptionNames(t.Context())
			expect.NoError(t, err)
			var got []storage.Subscription
			for _, name := range names {
				sub, err := s.Subscription(t.Context(), name)
				expect.NoError(t, err)
				got = append(got, at(sub.Name, sub.Next[0]))
			}
			expect.Equal(t, c.want, got)
			launches, err := s.Launches(t.Context())
			expect.NoError(t, err)
			expect.Equal(t, c.o.Launches, launches)
		})
	}
}

// An event that an older program has just taken is imported, and can be read. A larger one is refused.
func TestImportOfLargestEvent(t *testing.T) {
	d := testDescriptor(1, messages.TrustNone)
	e := toImport(1, 1, 1)
	e.Body = make([]byte, intake.MaxSize-format.SizeHint(&e))
	to := filepath.Join(t.TempDir(), "new")
	_, err := Import(t.Context(), to, d, each(e), ImportOptions{})
	expect.NoError(t, err)
	s := openToRead(t, to)
	defer closeStore(t, s)
	got := collectEvents(t, s.ByTime(t.Context(), Part{}))
	expect.Equal(t, 1, len(got))
	expect.Equal(t, len(e.Body), len(got[0].Body))
	e.Body = append(e.Body, 0)
	_, err = Import(t.Context(), to+"er", d, each(e), ImportOptions{DryRun: true})
	expect.ErrorIs(t, err, storage.ErrInvalidEvent)
}

// What cannot be imported at all, and what ends an import.
func TestImportIsRefused(t *testing.T) {
	d, to := testDescriptor(2, messages.TrustNone), filepath.Join(t.TempDir(), "new")
	_, err := Import(t.Context(), to, messages.Descriptor{}, each(), ImportOptions{})
	expect.ErrorIs(t, err, messages.ErrDescriptor)
	_, err = Import(t.Context(), to, d, each(), ImportOptions{Store: Options{Memory: -1}})
	expect.ErrorIs(t, err, messages.ErrSettings)
	_, err = Import(t.Context(), filepath.Join(to, format.LogFileName), d, each(), ImportOptions{})
	expect.ErrorIs(t, err, ErrExists)
	later := toImport(1, 1, 1)
	later.Epoch = 2
	for _, events := range [][]messages.Event{{toImport(1, 1, 1)}, {later, toImport(1, 2, 1)}} {
		_, err = Import(t.Context(), to, d, each(events...), ImportOptions{KeepEpochs: true, DryRun: true})
		expect.ErrorIs(t, err, storage.ErrInvalidEvent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Import(ctx, to, d, each(toImport(1, 1, 1)), ImportOptions{})
	expect.ErrorIs(t, err, context.Canceled)
	_, err = Import(t.Context(), to, d, each(toImport(1, 1, 1), toImport(1, 2, 1)), ImportOptions{Subscriptions: func() ([]storage.Subscription, error) { return nil, io.EOF }})
	expect.ErrorIs(t, err, io.EOF)
	// There are two events by now.
	_, err = Import(t.Context(), to, d, each(toImport(1, 1, 1)), ImportOptions{})
	expect.ErrorIs(t, err, ErrOtherImport)
	_, err = Import(t.Context(), to, d, each(toImport(1, 1, 1), toImport(1, 2, 2)), ImportOptions{})
	expect.ErrorIs(t, err, ErrOtherImport)
}

// Nothing can be imported, too.
func TestImportOfNothing(t *testing.T) {
	to := filepath.Join(t.TempDir(), "new")
	_, err := Import(t.Context(), to, testDescriptor(2, messages.TrustNone), each(), ImportOptions{Launches: []uint32{3, 1}})
	expect.NoError(t, err)
	s := openToRead(t, to)
	launches, err := s.Launches(t.Context())
	expect.NoError(t, err)
	if len(launches) != 2 || launches[0] != 1 || launches[1] != 3 {
		t.Errorf("got launches %v, want 1 and 3", launches)
	}
	closeStore(t, s)
}

// Events come in the order of their times, those that were appended together without another one between.
func TestByTime(t *testing.T) {
	to := filepath.Join(t.TempDir(), "new")
	group := toImport(1, 1, 20)
	group.Together = 1
	rest := toImport(1, 2, 40)
	rest.DedupID = messages.DedupID{}
	_, err := Import(t.Context(), to, testDescriptor(3, messages.TrustNone),
		each(toImport(2, 1, 30), group, rest, toImport(3, 1, 10), toImport(5, 1, 30), toImport(3, 2, 30)), ImportOptions{})
	expect.NoError(t, err)
	s := openToRead(t, to)
	defer closeStore(t, s)
	for _, c := range []struct {
		part Part
		want []messages.WSID
	}{
		{Part{}, []messages.WSID{3, 1, 1, 2, 5, 3}},
		{Part{Partitions: []messages.PartitionID{2, 0, 2}}, []messages.WSID{3, 2, 5, 3}},
		{Part{Workspaces: []messages.WSID{3, 1, 3, 77}}, []messages.WSID{3, 1, 1, 3}},
	} {
		var got []messages.WSID
		for _, e := range collectEvents(t, s.ByTime(t.Context(), c.part)) {
			got = append(got, e.Workspace)
		}
		expect.Equal(t, c.want, got)
		n, err := s.CountEvents(t.Context(), c.part)
		expect.NoError(t, err)
		expect.Equal(t, uint64(len(c.want)), n)
	}
	for _, wrong := range []Part{{Partitions: []messages.PartitionID{3}}, {Partitions: []messages.PartitionID{0}, Workspaces: []messages.WSID{1}}} {
		_, err := s.CountEvents(t.Context(), wrong)
		expect.ErrorIs(t, err, ErrPart)
		for _, err := range s.ByTime(t.Context(), wrong) {
			expect.ErrorIs(t, err, ErrPart)
		}
	}
}

// An index that names another event than its own does not give it that one's time: what comes before the error is the
// beginning of the right order.
func TestByTimeEndsBeforeDamage(t *testing.T) {
	to, d := filepath.Join(t.TempDir(), "new"), testDescriptor(2, messages.TrustNone)
	_, err := Import(t.Context(), to, d, each(
		toImport(2, 1, 10), toImport(2, 2, 20), toImport(1, 1, 25), toImport(1, 2, 40), toImport(2, 3, 50)), ImportOptions{})
	expect.NoError(t, err)
	s := open(t, to, d, Options{})
	defer closeStore(t, s)
	putList(t, s, 0, 1, 1, 4, 5)
	for e, err := range s.ByTime(t.Context(), Part{}) {
		if err == nil && e.RegisteredAt > 10 {
			t.Errorf("got the event of %d before that of 20", e.RegisteredAt)
		}
		if err != nil {
			expect.ErrorIs(t, err, storage.ErrDamaged)
			expect.ErrorIs(t, err, format.ErrMisplaced)
			return
		}
	}
	t.Error("got no error")
}
