package tests

import (
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// wantError fails the test unless err is all of those wanted.
func wantError(t testing.TB, err error, want ...error) {
	t.Helper()
	for _, w := range want {
		if !errors.Is(err, w) {
			t.Errorf("got error %v, want %v", err, w)
		}
	}
}

// wantConflict fails the test unless err names a key of a kind that was taken.
func wantConflict(t testing.TB, err error, place storage.Place) *storage.ConflictError {
	t.Helper()
	conflict, ok := errors.AsType[*storage.ConflictError](err)
	if !ok {
		t.Fatalf("got error %v, want a conflict of the %v", err, place)
	}
	if conflict.Place != place {
		t.Errorf("got a conflict of the %v, want one of the %v: %v", conflict.Place, place, err)
	}
	return conflict
}

// wantFailed fails the test unless err says that a partition has failed at an
// offset.
func wantFailed(t testing.TB, err error, p messages.PartitionID, o messages.PLogOffset) {
	t.Helper()
	failed, ok := errors.AsType[*messages.PartitionError](err)
	if !ok {
		t.Fatalf("got error %v, want one of partition %d", err, p)
	}
	if failed.Partition != p || failed.PLogOffset != o {
		t.Errorf("got %v, want partition %d and offset %d", err, p, o)
	}
}

// wantText fails the test unless an error's text names something.
func wantText(t testing.TB, err error, name string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("got error %v, want one that names %s", err, name)
	}
}
