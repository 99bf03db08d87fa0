package dumps

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/actors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// limit bounds what must not hang; it is far above what anything takes.
func limited(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// tell tells a writer of a message that an actor has received, if it wants to be told.
func tell(w *Writer, m actors.Traffic) {
	if w.WantsTraffic(m.Key, m.Message) {
		w.Received(m)
	}
}

// lineOf returns the line of a message, with bodies hidden.
func lineOf(t testing.TB, m actors.Traffic) string { return lineBy(t, Group{}, m) }

// lineBy returns the line of a message as a group's rule has it.
func lineBy(t testing.TB, g Group, m actors.Traffic) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump")
	w, err := Open(path, Options{Groups: map[string]Group{AllGroups: g}})
	check(t, err)
	tell(w, m)
	check(t, w.Close(limited(t)))
	text, err := os.ReadFile(path)
	check(t, err)
	return strings.TrimSuffix(string(text), "\n")
}
