package bolt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/storagetest"
)

// A backup has the subscriptions, at positions that its log has, although they move on with
// the log while it is made.
func TestBackupOfMovingSubscriptions(t *testing.T) {
	_, s := subscribing(t)
	w := takeOver(t, s, 0)
	to := filepath.Join(t.TempDir(), "backup")
	copied, err := s.Backup(t.Context(), to, CopyOptions{Progress: func(CopyProgress) {
		w.append(0, 2)
		move := moveTo("all", 0, uint64(w.next))
		move.Park = []storage.ParkedEvent{{Partition: 0, Offset: uint64(w.next) - 1, Reason: "while it is copied"}}
		if err := s.MoveSubscription(t.Context(), move); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || copied.Report.Subscriptions != 3 || copied.SubscriptionsTo == 0 || copied.SubscriptionsFrom == 0 {
		t.Fatalf("got %+v, %v", copied, err)
	}
	now, err := storagetest.WholeSubscription(t.Context(), s, "all")
	if err != nil {
		t.Fatal(err)
	}
	b := openToRead(t, to)
	then, err := storagetest.WholeSubscription(t.Context(), b, "all")
	if err != nil || then.Position(0) >= now.Position(0) || len(then.Parked) >= len(now.Parked) {
		t.Errorf("got %+v, %v, now it is %+v", then, err, now)
	}
}

// Restoring and compacting keep the subscriptions; the restored ones are of the new store.
func TestCopiesKeepSubscriptions(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	base := t.TempDir()
	for name, copyTo := range map[string]func(context.Context, string, string, CopyOptions) (Copied, error){
		"restore": Restore, "compact": Compact,
	} {
		to := filepath.Join(base, name)
		before := hashes(t, dir)
		copied, err := copyTo(t.Context(), dir, to, CopyOptions{})
		if err != nil || copied.Report.Subscriptions != 3 || copied.SubscriptionsTo == 0 || hashes(t, dir) != before {
			t.Fatalf("%s: got %+v, %v", name, copied, err)
		}
		c := open(t, to, testDescriptor(2, messages.TrustNone), Options{})
		checkSubscribed(t, c, threeSubscriptions())
		if err := c.MoveSubscription(t.Context(), moveTo("p1", 1, 2)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.PutSubscription(t.Context(), storage.Subscription{Name: "more"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		h, err := c.files.Subscriptions.Load().ReadHeader(format.RoleSubscriptions)
		if err != nil || h.ID != c.files.ID || (h.ID == s.files.ID) != (name == "compact") {
			t.Errorf("%s: got %+v, %v", name, h, err)
		}
	}
}

// A copy whose subscriptions are another store's is not restored.
func TestRestoreRefusesForeignSubscriptions(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	other, o := subscribing(t)
	closeStore(t, o)
	writeFiles(t, dir, map[string]string{format.SubscriptionsFileName: filesOf(t, other)[format.SubscriptionsFileName]})
	to := filepath.Join(t.TempDir(), "restored")
	if _, err := Restore(t.Context(), dir, to, CopyOptions{}); !errors.Is(err, storage.ErrForeign) {
		t.Errorf("got %v", err)
	}
	nothingAt(t, to)
}

func TestInspectSubscriptions(t *testing.T) {
	dir, s := verifiable(t)
	if in, err := s.Inspect(t.Context()); err != nil || in.Subscriptions != nil {
		t.Errorf("got %+v, %v", in.Subscriptions, err)
	}
	for _, sub := range threeSubscriptions() {
		if err := s.PutSubscription(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
	}
	in, err := s.Inspect(t.Context())
	if err != nil || in.Subscriptions == nil {
		t.Fatalf("got %+v, %v", in, err)
	}
	got := *in.Subscriptions
	if got.Name != format.SubscriptionsFileName || got.Format != format.SubscriptionsFormat || got.Count != 3 || got.Size == 0 || got.Pages == 0 {
		t.Errorf("got %+v", got)
	}
	closeStore(t, s)
	if err := os.Remove(filepath.Join(dir, format.StateFileName)); err != nil {
		t.Fatal(err)
	}
	l, err := OpenLog(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := l.Inspect(t.Context())
	if err = errors.Join(err, l.Close()); err != nil || alone.Subscriptions == nil || alone.Subscriptions.Count != 3 {
		t.Errorf("got %+v, %v", alone.Subscriptions, err)
	}
}

// Kinds that are added to the application later can be subscribed to, and the file needs no
// change for it.
func TestSubscriptionsOfAnExtendedApplication(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	d := testDescriptor(2, messages.TrustNone)
	d.Kinds = append(d.Kinds, messages.Kind{ID: testKind + 1, Name: "more"})
	s = open(t, dir, d, Options{})
	sub := storage.Subscription{Name: "new", SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{testKind, testKind + 1}}}
	if err := s.PutSubscription(t.Context(), sub); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = open(t, dir, d, Options{})
	got, err := s.Subscription(t.Context(), "new")
	if err != nil || !reflect.DeepEqual(got.Kinds, sub.Kinds) {
		t.Errorf("got %+v, %v", got, err)
	}
	checkSubscribed(t, s, []storage.Subscription{threeSubscriptions()[0], got, threeSubscriptions()[1], threeSubscriptions()[2]})
}
