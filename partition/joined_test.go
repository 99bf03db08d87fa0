package partition

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestJoinedErrorsAreSummedUp: the text of those of all partitions has a handful of lines, and
// each of them is found.
func TestJoinedErrorsAreSummedUp(t *testing.T) {
	rare, other := errors.New("the disk is gone"), &messages.PartitionError{Partition: 7, Cause: messages.ErrBrokenLog}
	errs := make([]error, messages.MaxPartitions)
	for i := range errs {
		errs[i] = fmt.Errorf("%w: partition %d: not everything was flushed", ErrNotClean, i)
	}
	errs[5], errs[6], errs[7], errs[8] = nil, rare, other, joined([]error{rare, messages.ErrStopped})
	err := joined(errs)
	want := strings.Join([]string{
		"application did not stop cleanly: partition 0: not everything was flushed",
		"application did not stop cleanly: partition 1: not everything was flushed",
		"and 65,530 more of the same",
		rare.Error(),
		rare.Error(),
		other.Error(),
		messages.ErrStopped.Error(),
	}, "\n")
	if got := err.Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, kind := range []error{ErrNotClean, rare, messages.ErrBrokenLog, messages.ErrStopped, errs[65535]} {
		if !errors.Is(err, kind) {
			t.Errorf("%v is not found", kind)
		}
	}
	if found, ok := errors.AsType[*messages.PartitionError](err); !ok || found != other {
		t.Errorf("got %v, want %v", found, other)
	}
}

// TestJoinedErrorsOfManyKinds: a handful of them is told, the others are counted.
func TestJoinedErrorsOfManyKinds(t *testing.T) {
	var errs []error
	for i := range 1500 {
		errs = append(errs, errors.New("fault "+strings.Repeat("x", i)))
	}
	lines := strings.Split(joined(errs).Error(), "\n")
	if len(lines) != 5 || lines[0] != "fault " || lines[4] != "and 1,496 others" {
		t.Errorf("got %d lines: %q", len(lines), lines[max(0, len(lines)-3):])
	}
}

// TestJoinedErrorsOfFew: none is nil, one is itself.
func TestJoinedErrorsOfFew(t *testing.T) {
	one := errors.New("one")
	if err := joined([]error{nil, nil}); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	if err := joined([]error{nil, one, joined(nil)}); err != one { //nolint:errorlint // it is not wrapped
		t.Errorf("got %v, want %v", err, one)
	}
}
