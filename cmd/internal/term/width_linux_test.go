package term

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A terminal tells its width, unless COLUMNS says another or it does not know it itself.
func TestWidthOfTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	defer func() { _ = terminal.Close() }()
	for _, tt := range []struct {
		columns string
		has     uint16
		want    int
	}{{"", 117, 117}, {"", 0, DefaultWidth}, {"50", 117, 50}} {
		t.Setenv("COLUMNS", tt.columns)
		if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: tt.has}); err != nil {
			t.Fatal(err)
		}
		if got := Width(terminal); got != tt.want {
			t.Errorf("COLUMNS=%q on a terminal of %d columns: got %d, want %d", tt.columns, tt.has, got, tt.want)
		}
	}
}
