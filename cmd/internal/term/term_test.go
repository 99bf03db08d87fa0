package term

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestInteractive(t *testing.T) {
	t.Setenv("TERM", "xterm")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if Interactive(null) || Interactive(file) || Interactive(new(bytes.Buffer)) {
		t.Errorf("got null device %v, file %v, buffer %v, want none", Interactive(null), Interactive(file), Interactive(new(bytes.Buffer)))
	}
}

// A pseudo terminal's multiplexer is a character device, and at hand on most
// systems.
func TestInteractiveTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal to be had: ", err)
	}
	defer func() { _ = terminal.Close() }()
	t.Setenv("TERM", "xterm")
	if !Interactive(terminal) {
		t.Error("got no terminal")
	}
	t.Setenv("TERM", "dumb")
	if Interactive(terminal) {
		t.Error("got a terminal, want none when TERM is dumb")
	}
}

func TestWidth(t *testing.T) {
	for columns, want := range map[string]int{"": 80, "120": 120, "0": 80, "-3": 80, "wide": 80} {
		t.Setenv("COLUMNS", columns)
		if got := Width(new(bytes.Buffer)); got != want {
			t.Errorf("COLUMNS=%q: got %d, want %d", columns, got, want)
		}
	}
}
