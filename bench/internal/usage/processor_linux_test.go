package usage

import (
	"os"
	"syscall"
	"testing"
	"time"
)

func TestProcessorGrows(t *testing.T) {
	before, err := Processor(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	begin := ownTime(t)
	for ownTime(t)-begin < 200*time.Millisecond {
	}
	after, err := Processor(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown, own := after-before, ownTime(t)-begin; grown < own-50*time.Millisecond || grown > own+50*time.Millisecond {
		t.Errorf("got %v, the process says %v", grown, own)
	}
}

// ownTime is the processor time of this process, as the process asks for it.
func ownTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
