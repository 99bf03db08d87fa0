package cli

import (
	"errors"
	"testing"
)

func TestOneLine(t *testing.T) {
	err := errors.Join(errors.New("first"), errors.New(" second\tand \x1b[31mred \u0091\u202e\x91é"))
	if got, want := OneLine(err), "first; second?and ?[31mred ??\ufffdé"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
