package expect_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// ended notes that a test was ended.
type ended struct{ with string }

func (*ended) Helper()                             {}
func (e *ended) Fatalf(format string, args ...any) { e.with = fmt.Sprintf(format, args...) }

func TestExpectations(t *testing.T) {
	wrapped := fmt.Errorf("read: %w", io.EOF)
	for name, c := range map[string]struct {
		check func(expect.T)
		want  string
	}{
		"no error":      {func(t expect.T) { expect.NoError(t, nil, 1) }, ""},
		"an error":      {func(t expect.T) { expect.NoError(t, io.EOF, 1) }, "[1]: got EOF"},
		"the error":     {func(t expect.T) { expect.ErrorIs(t, wrapped, io.EOF) }, ""},
		"another error": {func(t expect.T) { expect.ErrorIs(t, wrapped, errors.ErrUnsupported) }, "[]: got read: EOF, want unsupported operation"},
		"equal":         {func(t expect.T) { expect.Equal(t, []int{1}, []int{1}) }, ""},
		"not equal":     {func(t expect.T) { expect.Equal(t, []int{1}, nil) }, "[]: got [], want [1]"},
	} {
		var e ended
		c.check(&e)
		if e.with != c.want {
			t.Errorf("%s: got %q, want %q", name, e.with, c.want)
		}
	}
}

// opening is a test that ends with what it has to clean up.
type opening struct {
	ended
	end func()
}

func (o *opening) Cleanup(end func()) { o.end = end }

type closer struct{ err error }

func (c *closer) Close() error {
	err := c.err
	c.err = io.ErrClosedPipe
	return err
}

// What was opened is closed at the end, and not before; an error of either is told.
func TestOpened(t *testing.T) {
	for want, c := range map[string]struct{ open, close error }{
		"": {}, "[]: got EOF": {open: io.EOF}, "[]: got unexpected EOF": {close: io.ErrUnexpectedEOF},
	} {
		var o opening
		got := expect.Opened(&o, func(string) (*closer, error) { return &closer{c.close}, c.open }, "name")
		if !errors.Is(got.err, c.close) {
			t.Errorf("%q: it is closed before the end", want)
		}
		if o.end(); o.with != want || !errors.Is(got.err, io.ErrClosedPipe) {
			t.Errorf("got %q, %v, want %q and that it is closed", o.with, got.err, want)
		}
	}
}
