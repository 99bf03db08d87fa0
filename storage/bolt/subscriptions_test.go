package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/faulty"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/storagetest"
)

// subscribing makes a store whose partitions 0 and 1 have 7 and 2 events, with subscription
// "all" of everything, "p1" of partition 1 and "w2" of workspace 2.
func subscribing(t testing.TB) (dir string, s *Store) {
	t.Helper()
	dir, s = verifiable(t)
	for _, sub := range threeSubscriptions() {
		if err := s.PutSubscription(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
	}
	return dir, s
}

func threeSubscriptions() []storage.Subscription {
	return []storage.Subscription{
		{
			Name: "all", SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{testKind}},
			Next: map[messages.PartitionID]uint64{0: 8, 1: 2},
			Parked: []storage.ParkedEvent{
				{Partition: 0, Offset: 3, Reason: "no", Tries: 3, At: 7},
				{Partition: 0, Offset: 7, Reason: strings.Repeat("long ", 300), Tries: 1, At: 8},
			},
		},
		{
			Name: "p1", SubscriptionSource: storage.SubscriptionSource{Partition: new(messages.PartitionID(1))}, Stopped: "paused",
			Next: map[messages.PartitionID]uint64{},
		},
		{
			Name: "w2", SubscriptionSource: storage.SubscriptionSource{Workspace: new(messages.WSID(2))},
			Next: map[messages.PartitionID]uint64{0: 3}, Parked: []storage.ParkedEvent{{Partition: 0, Offset: 1}},
		},
	}
}

func moveTo(name string, p messages.PartitionID, next uint64) storage.SubscriptionMove {
	return storage.SubscriptionMove{Name: name, Next: map[messages.PartitionID]uint64{p: next}}
}

func checkSubscribed(t testing.TB, s *Store, want []storage.Subscription) {
	t.Helper()
	got, err := storagetest.WholeSubscriptions(t.Context(), s)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// The file is made with the first subscription, and the others do not know of it.
func TestSubscriptionsFileIsMadeOnFirstUse(t *testing.T) {
	dir, s := verifiable(t)
	closeStore(t, s)
	s = open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	if err := s.MoveSubscription(t.Context(), moveTo("x", 0, 1)); !errors.Is(err, storage.ErrNoSubscription) {
		t.Errorf("got %v", err)
	}
	names := func() []string { return slices.Sorted(maps.Keys(filesOf(t, dir))) }
	if got, want := names(), []string{format.LogFileName, format.StateFileName}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	others := filesOf(t, dir)
	if err := s.PutSubscription(t.Context(), threeSubscriptions()[1]); err != nil {
		t.Fatal(err)
	}
	if got, want := names(), []string{format.LogFileName, format.StateFileName, format.SubscriptionsFileName}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	closeStore(t, s)
	for name, content := range filesOf(t, dir) {
		if name != format.SubscriptionsFileName && content != others[name] {
			t.Errorf("%s was changed", name)
		}
	}
}

// What is in the way of the file is an error, and nothing else is closed or changed.
func TestSubscriptionsFileCannotBeMade(t *testing.T) {
	dir, s := verifiable(t)
	mkdir(t, filepath.Join(dir, format.SubscriptionsFileName))
	sub := threeSubscriptions()[1]
	if err := s.PutSubscription(t.Context(), sub); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("got %v", err)
	}
	checkSubscribed(t, s, nil)
	if err := os.Remove(filepath.Join(dir, format.SubscriptionsFileName)); err != nil {
		t.Fatal(err)
	}
	if err := s.PutSubscription(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	checkSubscribed(t, s, []storage.Subscription{sub})
}

// A file that a crash left empty, or without subscriptions, is as good as none.
func TestSubscriptionsFileLeftByACrash(t *testing.T) {
	dir, s := verifiable(t)
	path := filepath.Join(dir, format.SubscriptionsFileName)
	writeFiles(t, dir, map[string]string{format.SubscriptionsFileName: ""})
	sub := threeSubscriptions()[2]
	if err := s.PutSubscription(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteSubscription(t.Context(), sub.Name); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	content := filesOf(t, dir)[format.SubscriptionsFileName]
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	writeFiles(t, dir, map[string]string{format.SubscriptionsFileName: content})
	if err := s.PutSubscription(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	checkSubscribed(t, s, []storage.Subscription{sub})
}

func TestSubscriptionsReadOnly(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	before := hashes(t, dir)
	s = openToRead(t, dir)
	checkSubscribed(t, s, threeSubscriptions())
	for what, err := range map[string]error{
		"put":    s.PutSubscription(t.Context(), threeSubscriptions()[0]),
		"move":   s.MoveSubscription(t.Context(), moveTo("all", 0, 1)),
		"delete": s.DeleteSubscription(t.Context(), "all"),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	closeStore(t, s)
	if hashes(t, dir) != before {
		t.Error("the files were changed")
	}
}

// Without the file the subscriptions are forgotten, and nothing else is.
func TestSubscriptionsFileIsMissing(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	if err := os.Remove(filepath.Join(dir, format.SubscriptionsFileName)); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	checkSubscribed(t, s, nil)
	if _, err := s.Subscription(t.Context(), "all"); !errors.Is(err, storage.ErrNoSubscription) {
		t.Errorf("got %v", err)
	}
	takeOver(t, s, 0).append(2)
}

// Files that are not this store's are refused, by their names, and left as they are.
func TestSubscriptionsFileIsForeign(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	otherDir, other := subscribing(t)
	closeStore(t, other)
	own, foreign := filesOf(t, dir), filesOf(t, otherDir)
	for name, c := range map[string]struct {
		content string
		want    error
		text    string
	}{
		"another store's":  {foreign[format.SubscriptionsFileName], storage.ErrForeign, "is of store " + other.files.ID.String()},
		"the store's log":  {own[format.LogFileName], storage.ErrForeign, "got a log file, want a subscriptions file"},
		"text":             {strings.Repeat("text ", 5000), storage.ErrForeign, ""},
		"cut in its start": {own[format.SubscriptionsFileName][:100], storage.ErrDamaged, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := maps.Clone(own)
			files[format.SubscriptionsFileName] = c.content
			writeFiles(t, dir, files)
			before := hashes(t, dir)
			_, err := Open(t.Context(), dir, testDescriptor(2, messages.TrustNone), Options{})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), format.SubscriptionsFileName) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if hashes(t, dir) != before {
				t.Error("the files were changed")
			}
		})
	}
	t.Run("without the log", func(t *testing.T) {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{format.SubscriptionsFileName: own[format.SubscriptionsFileName]})
		_, err := Open(t.Context(), dir, testDescriptor(2, messages.TrustNone), Options{})
		if !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), format.LogFileName) {
			t.Errorf("got %v", err)
		}
	})
}

// The file counts its formats for itself.
func TestSubscriptionsFileOfANewerFormat(t *testing.T) {
	dir, s := subscribing(t)
	f := s.files.Subscriptions.Load()
	value := get(t, f, format.BucketHeader, format.KeyHeader)
	if value[9] != format.SubscriptionsFormat {
		t.Errorf("got format %d", value[9])
	}
	value[9] = format.SubscriptionsFormat + 1
	put(t, f, format.BucketHeader, format.KeyHeader, value)
	closeStore(t, s)
	_, err := Open(t.Context(), dir, testDescriptor(2, messages.TrustNone), Options{})
	if !errors.Is(err, storage.ErrFormat) || !strings.Contains(err.Error(), "want 1 to 2") {
		t.Errorf("got %v", err)
	}
}

// A sync that fails leaves the outcome unknown, and closes the store.
func TestUnknownOutcomeOfSubscriptions(t *testing.T) {
	dir, s := subscribing(t)
	w := takeOver(t, s, 0)
	faulty.CommitsOf(s.files.Subscriptions.Load()).After.Fail(io.ErrUnexpectedEOF)
	if err := s.MoveSubscription(t.Context(), moveTo("all", 0, 4)); !errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	<-s.closing
	if err := s.MoveSubscription(t.Context(), moveTo("all", 0, 5)); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("move: got %v", err)
	}
	if err := w.try(w.event(2)); !errors.Is(err, storage.ErrClosed) {
		t.Errorf("append: got %v", err)
	}
	closeStore(t, s)
	s = open(t, dir, testDescriptor(2, messages.TrustNone), Options{})
	want := threeSubscriptions() // the injected failure comes after the write
	want[0].Next[0], want[0].Parked = 4, want[0].Parked[:1]
	checkSubscribed(t, s, want)
}

// A commit that wrote nothing for want of space is refused, and leaves nothing.
func TestNoSpaceForSubscriptions(t *testing.T) {
	_, s := subscribing(t)
	commits := faulty.CommitsOf(s.files.Subscriptions.Load())
	commits.Before.Fail(errNoSpace)
	for what, err := range map[string]error{
		"put":    s.PutSubscription(t.Context(), storage.Subscription{Name: "more"}),
		"move":   s.MoveSubscription(t.Context(), moveTo("all", 0, 1)),
		"delete": s.DeleteSubscription(t.Context(), "all"),
	} {
		if !errors.Is(err, storage.ErrFull) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	commits.Before.Clear()
	checkSubscribed(t, s, threeSubscriptions())
}

func TestSubscriptionsMaxSize(t *testing.T) {
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{SubscriptionsMaxSize: 1 << 17, MmapSize: 1 << 15})
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = s.PutSubscription(t.Context(), storage.Subscription{Name: fmt.Sprintf("s%03d", n), Stopped: strings.Repeat("x", 2000)})
	}
	if !errors.Is(err, storage.ErrFull) || n < 10 {
		t.Fatalf("got %v after %d", err, n)
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	if all, err := storagetest.WholeSubscriptions(t.Context(), s); err != nil || len(all) != n-1 {
		t.Errorf("got %d, %v, want %d", len(all), err, n-1)
	}
}

// waitQueued waits until so many requests wait for the keeper, which is held.
func waitQueued(t *testing.T, s *Store, n int) {
	t.Helper()
	for len(s.subscriptions.Requests) < n {
		if t.Context().Err() != nil {
			t.Fatal(t.Context().Err())
		}
		runtime.Gosched()
	}
}

// Moves that wait while one is synced share the next commit; each is judged alone, and one
// whose caller has gone is left out.
func TestSubscriptionMovesShareACommit(t *testing.T) {
	const many = 50
	_, s := subscribing(t)
	commits, entered, release := atomic.Int64{}, make(chan struct{}, many), make(chan struct{})
	faulty.CommitsOf(s.files.Subscriptions.Load()).Before.Set(func() error {
		commits.Add(1)
		entered <- struct{}{}
		<-release
		return nil
	})
	errs := make(chan error, many+3)
	go func() { errs <- s.MoveSubscription(t.Context(), moveTo("all", 0, 7)) }()
	<-entered
	for i := range many {
		go func() { errs <- s.MoveSubscription(t.Context(), moveTo([]string{"all", "w2"}[i%2], 0, 2)) }()
	}
	refused, gone := make(chan error, 1), make(chan error, 1)
	go func() { refused <- s.MoveSubscription(t.Context(), moveTo("all", 0, 99)) }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { gone <- s.MoveSubscription(ctx, moveTo("p1", 1, 2)) }()
	waitQueued(t, s, many+2)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) || errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	close(release)
	for range many + 1 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := <-refused; !errors.Is(err, storage.ErrSubscription) {
		t.Errorf("got %v", err)
	}
	if commits.Load() != 2 {
		t.Errorf("got %d commits, want 2", commits.Load())
	}
	want := threeSubscriptions()
	want[0].Next[0], want[0].Parked = 2, nil
	want[2].Next[0] = 2
	checkSubscribed(t, s, want)
}

// A move whose context ends while it is written has an unknown outcome, and goes on.
func TestSubscriptionMoveIsNotTakenBack(t *testing.T) {
	_, s := subscribing(t)
	entered, release := faulty.CommitsOf(s.files.Subscriptions.Load()).Before.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	moved := make(chan error, 1)
	go func() { moved <- s.MoveSubscription(ctx, moveTo("p1", 1, 2)) }()
	<-entered
	cancel()
	if err := <-moved; !errors.Is(err, messages.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(release)
	closeStore(t, s)
}

// A full queue obeys contexts.
func TestSubscriptionQueueIsBounded(t *testing.T) {
	_, s := subscribing(t)
	entered, release := faulty.CommitsOf(s.files.Subscriptions.Load()).Before.Hold()
	room := cap(s.subscriptions.Requests)
	errs := make(chan error, room+1)
	move := func() { errs <- s.MoveSubscription(t.Context(), moveTo("p1", 1, 2)) }
	go move()
	<-entered
	for range room {
		go move()
	}
	waitQueued(t, s, room)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- s.MoveSubscription(ctx, moveTo("p1", 1, 2)) }()
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) || errors.Is(err, messages.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	close(release)
	for range room + 1 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
