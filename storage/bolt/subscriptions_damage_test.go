package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// readSubscriptions opens the file of a store as opening the store does, and reads every
// subscription in both ways, and one that is not there. Each must be right or an error.
func readSubscriptions(t *testing.T, dir string, want []storage.Subscription) error {
	t.Helper()
	s, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer closeStore(t, s)
	var errs []error
	for i := range want {
		got, err := storagetest.WholeSubscription(t.Context(), s, want[i].Name)
		errs = append(errs, err)
		switch {
		case errors.Is(err, storage.ErrNoSubscription):
			t.Errorf("%s is said not to be there", want[i].Name)
		case err == nil && !reflect.DeepEqual(got, want[i]):
			t.Errorf("got %+v, want %+v", got, want[i])
		}
	}
	if _, err := s.Subscription(t.Context(), "none"); !errors.Is(err, storage.ErrNoSubscription) {
		if err == nil {
			t.Error("got a subscription that nobody has made")
		}
		errs = append(errs, err)
	}
	all, err := storagetest.WholeSubscriptions(t.Context(), s)
	if err == nil && !reflect.DeepEqual(all, want) {
		t.Errorf("got %+v, want %+v", all, want)
	}
	return errors.Join(append(errs, err)...)
}

// manySubscriptions makes a store whose subscriptions need several pages.
func manySubscriptions(t *testing.T) (dir string, want []storage.Subscription) {
	t.Helper()
	dir, s := subscribing(t)
	want = threeSubscriptions()
	for i := range 40 {
		sub := storage.Subscription{
			Name: fmt.Sprintf("many %02d", i), Next: map[messages.PartitionID]uint64{0: 5, 1: 3}, Stopped: strings.Repeat("s", 100),
			Parked: []storage.ParkedEvent{{Partition: 0, Offset: 4, Reason: strings.Repeat("p", 200)}},
		}
		if err := s.PutSubscription(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
		want = append(want, sub)
	}
	closeStore(t, s)
	slices.SortFunc(want, func(a, b storage.Subscription) int { return strings.Compare(a.Name, b.Name) })
	return dir, want
}

// Bits are flipped all over the file: what is read is right, or an error.
func TestFlippedBitsInSubscriptions(t *testing.T) {
	t.Parallel()
	dir, want := manySubscriptions(t)
	path := filepath.Join(dir, format.SubscriptionsFileName)
	sound := usedOf(t, path)
	found, flips := 0, 0
	for at := 0; at < len(sound); at += 97 {
		flips++
		overwrite(t, path, int64(at), []byte{sound[at] ^ 1<<(flips%8)})
		if err := readSubscriptions(t, dir, want); err != nil {
			found++
		}
		overwrite(t, path, int64(at), sound[at:at+1])
		if t.Failed() {
			t.Fatalf("byte %d", at)
		}
	}
	if err := readSubscriptions(t, dir, want); err != nil {
		t.Fatal(err)
	}
	if found < flips/10 {
		t.Errorf("%d of %d flips were found", found, flips)
	}
	t.Logf("%d of %d flips were found, the others change nothing", found, flips)
}

// The file is cut: what is read is right, or an error.
func TestTruncatedSubscriptions(t *testing.T) {
	t.Parallel()
	dir, want := manySubscriptions(t)
	path := filepath.Join(dir, format.SubscriptionsFileName)
	files := filesOf(t, dir)
	size := len(usedOf(t, path))
	for length := 0; length < size; length += 1021 {
		if err := os.Truncate(path, int64(length)); err != nil {
			t.Fatal(err)
		}
		if err := readSubscriptions(t, dir, want); err == nil {
			t.Errorf("%d of %d bytes: no error", length, size)
		}
		writeFiles(t, dir, files)
	}
	if err := readSubscriptions(t, dir, want); err != nil {
		t.Fatal(err)
	}
}

// subscriptionDoctoring is a way to make subscriptions wrong, the error of reading "all" or
// "p1", and the fault that verify finds.
type subscriptionDoctoring struct {
	name string
	do   func(*testing.T, *boltfile.File)
	read string
	want string
}

func removing(bucket, key []byte) func(*testing.T, *boltfile.File) {
	return func(t *testing.T, f *boltfile.File) {
		t.Helper()
		if err := f.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Delete(key) }); err != nil {
			t.Fatal(err)
		}
	}
}

func putting(c subsdb.Change) func(*testing.T, *boltfile.File) {
	return func(t *testing.T, f *boltfile.File) { put(t, f, c.Bucket, c.Key, c.Value) }
}

func spoiling(bucket, key []byte) func(*testing.T, *boltfile.File) {
	return func(t *testing.T, f *boltfile.File) {
		value := get(t, f, bucket, key)
		value[len(value)/2] ^= 8
		put(t, f, bucket, key, value)
	}
}

func redefining(name string, change func(*format.Definition)) func(*testing.T, *boltfile.File) {
	return func(t *testing.T, f *boltfile.File) {
		t.Helper()
		d, err := format.DecodeDefinition([]byte(name), get(t, f, format.BucketSubscriptions, []byte(name)))
		if err != nil {
			t.Fatal(err)
		}
		change(&d)
		putting(subsdb.DefinitionChange(name, &d))(t, f)
	}
}

func subscriptionDoctorings() []subscriptionDoctoring {
	all, p1 := []byte("all"), []byte("p1")
	return []subscriptionDoctoring{
		{"a definition is damaged", spoiling(format.BucketSubscriptions, all), "checksum", `damage: file subscriptions.db, bucket subscriptions, subscription "all": checksum does not match`},
		{"a position is damaged", spoiling(format.BucketPositions, format.PositionKey("all", 1)), "checksum", `damage: file subscriptions.db, bucket positions, subscription "all": checksum does not match`},
		{"a parked event is damaged", spoiling(format.BucketParked, format.ParkedKey("all", 0, 7)), "checksum", `damage: file subscriptions.db, bucket parked, subscription "all": checksum does not match`},
		{"a position is missing", removing(format.BucketPositions, format.PositionKey("all", 1)), "got 1 positions", `damage: file subscriptions.db, bucket positions, subscription "all": got 1 positions, want 2`},
		{"a parked event is missing", removing(format.BucketParked, format.ParkedKey("all", 0, 7)), "got 1 parked", `damage: file subscriptions.db, bucket parked, subscription "all": got 1 parked events, want 2`},
		{"a subscription is missing", removing(format.BucketSubscriptions, p1), "got 2 subscriptions", `damage: file subscriptions.db, bucket subscriptions, the bucket: got 2 subscriptions, want 3`},
		{"the count is damaged", spoiling(format.BucketHeader, format.KeySubscriptions), "", `damage: file subscriptions.db, bucket header, subscriptions: checksum does not match`},
		{"the count is missing", removing(format.BucketHeader, format.KeySubscriptions), "", `damage: file subscriptions.db, bucket header, subscriptions: value has a wrong layout`},
		{"a position of nobody", putting(subsdb.PositionChange("nobody", subsdb.Placed{Partition: 0, Position: subsdb.Position{Next: 1}})), "", `damage: file subscriptions.db, bucket positions, the bucket: got 4 entries, the subscriptions have 3`},
		{"a parked event of nobody", putting(subsdb.ParkedChange("nobody", &storage.ParkedEvent{Offset: 1})), "", `damage: file subscriptions.db, bucket parked, the bucket: got 4 entries, the subscriptions have 3`},
		{"beyond the log", putting(subsdb.PositionChange("all", subsdb.Placed{Partition: 0, Position: subsdb.Position{Next: 9}})), "beyond the next event", `subscription: subscription "all": partition 0: position is 9, the log ends at 7`},
		{"beyond the workspace's log", putting(subsdb.PositionChange("w2", subsdb.Placed{Partition: 0, Position: subsdb.Position{Next: 5}})), "", `subscription: subscription "w2": partition 0: position is 5, the log ends at 3`},
		{"parked at the position", putting(subsdb.PositionChange("all", subsdb.Placed{Partition: 0, Position: subsdb.Position{Next: 7}})), "", `subscription: subscription "all": wrong subscription: "all": partition 0: got parked offset 7, want 1 to 6, before the position`},
		{"no such partition", redefining("p1", func(d *format.Definition) { *d.Partition = 2 }), "", `subscription: subscription "p1": wrong subscription: "p1": got partition 2, the application has 2`},
		{"no such kind", redefining("all", func(d *format.Definition) { d.Kinds[0] = 9 }), "", `subscription: subscription "all": wrong subscription: "all": unknown workspace kind: 9`},
	}
}

// What is wrong is found and named, by verify and by whoever reads it. Deleting a damaged
// subscription helps.
func TestVerifyFindsWrongSubscriptions(t *testing.T) {
	t.Parallel()
	for _, d := range subscriptionDoctorings() {
		t.Run(d.name, func(t *testing.T) {
			dir, s := subscribing(t)
			d.do(t, s.files.Subscriptions.Load())
			if d.read != "" {
				_, err := storagetest.WholeSubscription(t.Context(), s, "all")
				_, err2 := storagetest.WholeSubscription(t.Context(), s, "p1")
				if err := errors.Join(err, err2); !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), d.read) {
					t.Errorf("read: got %v", err)
				}
			}
			closeStore(t, s)
			r := verified(t, dir, verify.Options{})
			if got := strings.ReplaceAll(faultsOf(&r), dir+"/", ""); got != "false "+d.want {
				t.Errorf("got %s\nwant %s", got, d.want)
			}
		})
	}
}

func faultsOf(r *verify.Report) string {
	var all []string
	for _, f := range r.Faults {
		all = append(all, fmt.Sprintf("%v %v", f.Projection, f))
	}
	return strings.Join(all, "\n")
}

// A subscription that is damaged can be deleted, and the others do not suffer.
func TestDeleteDamagedSubscription(t *testing.T) {
	dir, s := subscribing(t)
	f := s.files.Subscriptions.Load()
	spoiling(format.BucketSubscriptions, []byte("all"))(t, f)
	removing(format.BucketPositions, format.PositionKey("w2", 0))(t, f)
	if err := s.MoveSubscription(t.Context(), moveTo("all", 0, 1)); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if err := s.PutSubscription(t.Context(), threeSubscriptions()[0]); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	if err := s.MoveSubscription(t.Context(), moveTo("p1", 1, 2)); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"all", "w2"} {
		if err := s.DeleteSubscription(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	want := threeSubscriptions()[1]
	want.Next = map[messages.PartitionID]uint64{1: 2}
	checkSubscribed(t, s, []storage.Subscription{want})
	closeStore(t, s)
	if r := verified(t, dir, verify.Options{}); r.FaultCount != 0 || r.Subscriptions != 1 {
		t.Errorf("got %s", r)
	}
}

// Verify looks at the subscriptions also where state.db is missing, and counts them.
func TestVerifySubscriptions(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	r := verified(t, dir, verify.Options{})
	if r.FaultCount != 0 || r.Subscriptions != 3 || !strings.Contains(r.String(), ", 3 subscriptions: no fault") {
		t.Errorf("got %s", r)
	}
	files := filesOf(t, dir)
	for what, c := range map[string]struct {
		change func(files map[string]string)
		faults uint64
	}{
		"state.db is missing": {func(files map[string]string) { delete(files, format.StateFileName) }, 1},
		"a page is damaged": {func(files map[string]string) {
			maps.Copy(files, withByte(files, format.SubscriptionsFileName, 3*os.Getpagesize()+boltfile.PageFlagsAt, 0x44))
		}, 1},
	} {
		dir := t.TempDir()
		changed := maps.Clone(files)
		c.change(changed)
		writeFiles(t, dir, changed)
		r := verified(t, dir, verify.Options{})
		if r.FaultCount < c.faults || strings.Contains(what, "page") && !strings.Contains(r.String(), format.SubscriptionsFileName) {
			t.Errorf("%s: got %s", what, r)
		}
		if !strings.Contains(what, "page") && (r.FaultCount != 1 || r.Subscriptions != 3) {
			t.Errorf("%s: got %s", what, r)
		}
	}
}

// A page that is in use and said to be free would be written over by the next commit: the
// store does not open.
func TestSubscriptionsPageIsUsedAndFree(t *testing.T) {
	dir, s := subscribing(t)
	closeStore(t, s)
	path := filepath.Join(dir, format.SubscriptionsFileName)
	root, freelist := rootsOf(t, path)
	overwrite(t, path, int64(freelist*os.Getpagesize())+boltfile.PageHeaderLen, binary.NativeEndian.AppendUint64(nil, uint64(root)))
	_, err := Open(t.Context(), dir, testDescriptor(2, messages.TrustNone), Options{})
	if !errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), fmt.Sprintf("%s, page %d", format.SubscriptionsFileName, root)) {
		t.Errorf("got %v", err)
	}
}
