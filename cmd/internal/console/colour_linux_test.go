package console

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/partita-go/partita/cmd/internal/cli"
)

// terminal returns a terminal, and what reads what is shown on it.
func terminal(t *testing.T) (screen, shown *os.File) {
	t.Helper()
	shown, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	t.Cleanup(func() { _ = shown.Close() })
	if err := unix.IoctlSetPointerInt(int(shown.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(shown.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return screen, shown
}

// TestColours: the mark of a check has a colour on a terminal, unless NO_COLOR says no, or it is no terminal.
func TestColours(t *testing.T) {
	screen, shown := terminal(t)
	for _, tt := range []struct{ noColor, term, want string }{
		{"", "xterm", "\x1b[32m✓\x1b[0m good ✗\r\n\x1b[31m✗\x1b[0m bad\r\nneither ✓\r\n"},
		{"1", "xterm", "✓ good ✗\r\n✗ bad\r\nneither ✓\r\n"}, {"", "dumb", "✓ good ✗\r\n✗ bad\r\nneither ✓\r\n"},
	} {
		t.Setenv("NO_COLOR", tt.noColor)
		t.Setenv("TERM", tt.term)
		c := New(cli.Streams{Out: screen, Err: screen}, false)
		c.Say("%s good ✗", Mark(true))
		c.Tell(Mark(false)+" ", "bad")
		c.Say("neither ✓")
		b := make([]byte, len(tt.want))
		for read := 0; read < len(b); {
			n, err := shown.Read(b[read:])
			if err != nil {
				t.Fatal(err)
			}
			read += n
		}
		if string(b) != tt.want {
			t.Errorf("%+v: got %q", tt, b)
		}
	}
}
