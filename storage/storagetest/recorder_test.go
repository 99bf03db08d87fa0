package storagetest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// recorder is a test that may fail: it keeps the failure instead of passing it on.
type recorder struct {
	testing.TB

	mu       sync.Mutex
	messages []string
	skipped  bool
	cleanups []func()
}

func (r *recorder) fail(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, message)
}

func (r *recorder) Helper()                           {}
func (r *recorder) Log(...any)                        {}
func (r *recorder) Logf(string, ...any)               {}
func (r *recorder) Error(args ...any)                 { r.fail(fmt.Sprint(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }
func (r *recorder) Fail()                             { r.fail("failed") }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Skipf(string, ...any) {
	r.skipped = true
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.messages) > 0
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

// failureOf runs a check at its levels and returns the first failure, "" if it
// passes.
func failureOf(t *testing.T, c check, f Factory) string {
	for _, level := range c.levels {
		if failure := failureAt(t, c, f, level); failure != "" {
			return failure
		}
	}
	return ""
}

func failureAt(t *testing.T, c check, f Factory, level messages.TrustLevel) string {
	if r := runRecorded(t, c, f, level); len(r.messages) > 0 {
		return r.messages[0]
	}
	return ""
}

// runRecorded runs a check to its end.
func runRecorded(t *testing.T, c check, f Factory, level messages.TrustLevel) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.fail(fmt.Sprintf("panic: %v", p))
			}
		}()
		c.check(r, f, level)
	}()
	<-done
	for _, cleanup := range slices.Backward(r.cleanups) {
		cleanup()
	}
	return r
}

// bareFactory makes stores that are nothing but that.
type bareFactory struct{ MemoryFactory }

func (f bareFactory) Open(t testing.TB, d messages.Descriptor) storage.Store {
	return struct{ storage.Store }{f.MemoryFactory.Open(t, d)}
}

// TestOptionalChecksAreSkipped of stores that promise less.
func TestOptionalChecksAreSkipped(t *testing.T) {
	for _, c := range slices.Concat(submitChecks, subscriptionChecks) {
		if r := runRecorded(t, c, bareFactory{}, messages.TrustNone); !r.skipped || len(r.messages) > 0 {
			t.Errorf("%s: got %v, want it to be skipped", c.name, r.messages)
		}
	}
}
