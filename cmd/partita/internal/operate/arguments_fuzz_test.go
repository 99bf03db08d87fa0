package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// FuzzArguments: whatever the arguments are, the program ends with one of its exit
// statuses, says in one line what is wrong, and leaves the store as it was. The store
// is where STORE stands; other paths are refused before they are used. Commands that
// would change the store get none.
func FuzzArguments(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "store")
	s, err := bolt.Open(f.Context(), dir, messages.Descriptor{
		Application: "shop", Partitions: 2, Kinds: []messages.Kind{{ID: 1, Name: "shop"}},
	}, bolt.Options{Create: true})
	if err != nil {
		f.Fatal(err)
	}
	if err := s.Close(f.Context()); err != nil {
		f.Fatal(err)
	}
	for _, args := range everyCommand("STORE") {
		f.Add(strings.Join(args, "\n"))
		f.Add(strings.Join(args, "\n") + "\n--json")
	}
	for _, args := range []string{
		"", "help", "-h", "nonsense", "verify --db", "log --db STORE --partition 1 --from 2 --limit 3", "log --db STORE --limit 0x2",
		"numbers --db STORE --workspace 18446744073709551616", "verify --db STORE --max-faults 0 --max-memory 1", "verify --db STORE --json=maybe",
		"serve --db STORE --listen [::1]:0 --token-file x --connections 5", "serve --db STORE --listen :80 --tls-cert x --tls-key y",
	} {
		f.Add(strings.ReplaceAll(args, " ", "\n"))
	}
	before := stamps(f, dir)
	f.Fuzz(func(t *testing.T, text string) {
		var args []string
		for arg := range strings.SplitSeq(text, "\n") {
			if strings.ContainsAny(arg, "/\\~") || arg == "TO" {
				return // it would be somebody's file
			}
			args = append(args, arg)
		}
		if strings.HasPrefix(args[0], "__complete") {
			return // it is the shell's
		}
		store := dir
		if slices.ContainsFunc(args, changes) {
			store = "none"
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "STORE", store)
		}
		t.Chdir(t.TempDir())
		// What would go on for ever ends.
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		var stdout, stderr bytes.Buffer
		status := Run(ctx, args, strings.NewReader(""), &stdout, &stderr)
		switch {
		case status == exitFine:
			plainJSON(t, args, stdout.String())
		case status != exitFault && status != exitBlind:
			t.Errorf("got status %d", status)
		case !oneLine(stderr.String()):
			t.Errorf("got status %d and stderr %q, want one line at its end", status, stderr.String())
		}
		if after := stamps(t, dir); after != before {
			t.Errorf("the store was changed: got %s, want %s", after, before)
		}
	})
}

// changes reports whether an argument may be a command that changes the store.
func changes(arg string) bool {
	return slices.Contains([]string{"serve", verbDrop, verbPause, verbResume, verbRewind, verbSkip, verbDelete}, arg)
}

// stamps are the sizes and times of a directory's files. They are large, so that
// reading them would take all the time.
func stamps(t testing.TB, dir string) (text string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	check(t, err)
	for _, e := range entries {
		info, err := e.Info()
		check(t, err)
		text += fmt.Sprintf("%s %d %v; ", e.Name(), info.Size(), info.ModTime())
	}
	return text
}

// oneLine reports whether the last line of an error stream is an error as it should be.
func oneLine(text string) bool {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	last := lines[len(lines)-1]
	return strings.HasPrefix(last, "partita: ") && !strings.ContainsFunc(last, unicode.IsControl)
}

// plainJSON checks that what a command prints is JSON if that was asked for.
func plainJSON(t *testing.T, args []string, stdout string) {
	t.Helper()
	last := len(args) - 1
	// Behind another flag it would be that one's value.
	if args[last] != "--json" || strings.HasPrefix(args[last-1], "-") || strings.Contains(stdout, "\nUsage:\n") {
		return
	}
	for dec := json.NewDecoder(strings.NewReader(stdout)); ; {
		var value any
		if err := dec.Decode(&value); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%q: %v: %q", args, err, stdout)
		}
	}
}
