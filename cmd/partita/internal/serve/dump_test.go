package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/partita-go/partita/cmd/partita/internal/config"
)

// TestDumpOfADocument: whoever may ask the API may begin and end the dump that the server's own configuration names, and
// lets the server write to no other file. At a hangup the file may name another one, which is the one from then on.
func TestDumpOfADocument(t *testing.T) {
	l, _, _ := newLive(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "partita.toml")
	first, second := filepath.Join(dir, "first.dump"), filepath.Join(dir, "second.dump")
	l.source = config.NewSource(file, func(string) string { return "" }, nil)
	put := func(path, wrong string) {
		t.Helper()
		err := l.replace(limit(t), fmt.Appendf(nil, `{"dump": %q}`, path))
		if wrong == "" {
			check(t, err)
			return
		}
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: got %v, want %s", path, err, wrong)
		}
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	put(first, fmt.Sprintf("the document: dump: got %q, want none, as", first))
	hangup := func(path string) {
		t.Helper()
		check(t, os.WriteFile(file, fmt.Appendf(nil, "dump = %q\n", path), 0o600))
		l.reload(limit(t))
		check(t, l.refused)
	}
	hangup(first)
	for _, path := range []string{"", first} {
		put(path, "")
		put(second, fmt.Sprintf("the document: dump: got %q, want %q or none, as", second, first))
	}
	put("", "")
	check(t, os.Remove(first))
	hangup(second)
	put("", "")
	put(first, fmt.Sprintf("got %q, want %q or none", first, second))
	put(second, "")
	check(t, l.dumps.take(nil))
}

// TestDumpWithinAStore: no dump is written within a store, also not by the way of a link, or before the store is there.
func TestDumpWithinAStore(t *testing.T) {
	dir, store := t.TempDir(), newStore(t)
	link, wal := filepath.Join(dir, "link"), filepath.Join(dir, "wal")
	check(t, os.Symlink(store, link))
	check(t, os.Symlink(filepath.Join(store, "log.db"), wal))
	before, err := os.Stat(filepath.Join(store, "log.db"))
	check(t, err)
	own := t.TempDir()
	d := &dumping{logger: zap.NewNop(), store: own}
	for _, path := range []string{filepath.Join(store, "x"), filepath.Join(store, "log.db"), filepath.Join(link, "x"), wal, filepath.Join(own, "x")} {
		_, err := d.open(path, dumpOptions(config.Default()))
		if want := fmt.Sprintf("dump: got %q within the store ", path); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if err := (&Config{Dump: path, Dir: own}).Check(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "within the store") {
			t.Errorf("%s: got %v", path, err)
		}
	}
	after, err := os.Stat(filepath.Join(store, "log.db"))
	check(t, err)
	if after.Size() != before.Size() {
		t.Errorf("got %d bytes, want %d as before", after.Size(), before.Size())
	}
}
