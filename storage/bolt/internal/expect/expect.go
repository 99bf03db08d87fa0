// Package expect ends a test that got something else than it wants. The tests of
// the store and of its rooms use it.
package expect

import (
	"errors"
	"io"
	"reflect"
)

// T is a test, or one of rapid's.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
}

// NoError ends the test if there is an error. where says which case it is.
func NoError(t T, err error, where ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v: got %v", where, err)
	}
}

// ErrorIs ends the test if an error is not the one wanted, as [errors.Is] sees it.
func ErrorIs(t T, err, want error, where ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v: got %v, want %v", where, err, want)
	}
}

// Equal ends the test if two values differ, as [reflect.DeepEqual] sees them.
func Equal[V any](t T, want, got V, where ...any) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%v: got %v, want %v", where, got, want)
	}
}

// Opened returns what has a name, opened until the end of the test.
func Opened[C io.Closer](t interface {
	T
	Cleanup(end func())
}, open func(name string) (C, error), name string,
) C {
	t.Helper()
	c, err := open(name)
	NoError(t, err)
	t.Cleanup(func() { NoError(t, c.Close()) })
	return c
}
