package bolt

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// runningStore makes a store with 30 events, 20 of them projected, and returns its
// files as they are while it is open: what a crash leaves. The space at their ends
// that bbolt keeps for later is left out.
func runningStore(t testing.TB) (files map[string]string, d messages.Descriptor) {
	t.Helper()
	dir, d := someStore(t)
	open(t, dir, d, Options{})
	files = filesOf(t, dir)
	for name, content := range files {
		files[name] = content[:64*4096]
	}
	return files, d
}

// writeFiles puts files into a directory, over those that are there.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// withByte returns the files with some bits of a byte flipped.
func withByte(files map[string]string, name string, at int, bits byte) map[string]string {
	content := []byte(files[name])
	content[at] ^= bits
	changed := maps.Clone(files)
	changed[name] = string(content)
	return changed
}

// A damaged meta page keeps either file from opening, wherever the damage is and
// whichever of the two pages is the newer one.
func TestDamagedMetaPage(t *testing.T) {
	whole, d := runningStore(t)
	dir := t.TempDir()
	for _, name := range []string{format.LogFileName, format.StateFileName} {
		for page := range boltfile.MetaPages {
			where := fmt.Sprintf("file %s, meta page %d at byte %d", filepath.Join(dir, name), page, page*4096)
			for at := page*4096 + boltfile.MetaMagicAt; at < page*4096+boltfile.MetaEnd; at++ {
				files := withByte(whole, name, at, 1<<(at%8))
				writeFiles(t, dir, files)
				for _, readOnly := range []bool{false, true} {
					s, err := Open(t.Context(), dir, d, Options{ReadOnly: readOnly})
					if err == nil {
						closeStore(t, s)
					}
					var damage *storage.DamagedError
					if !errors.As(err, &damage) || damage.Where != where {
						t.Fatalf("%s, byte %d, read-only %v: got %v, want damage of %s", name, at, readOnly, err, where)
					}
				}
				if !reflect.DeepEqual(files, filesOf(t, dir)) {
					t.Fatalf("%s, byte %d: the files were changed", name, at)
				}
			}
		}
	}
}

// What else is in the two pages counts for nothing.
func TestMetaPageSlack(t *testing.T) {
	t.Parallel()
	whole, d := runningStore(t)
	dir := t.TempDir()
	offsets := []int{boltfile.MetaEnd, boltfile.MetaEnd + 1, 511, 512, 4095}
	for at := range boltfile.MetaMagicAt {
		offsets = append(offsets, at)
	}
	for _, name := range []string{format.LogFileName, format.StateFileName} {
		for page := range boltfile.MetaPages {
			for _, at := range offsets {
				writeFiles(t, dir, withByte(whole, name, page*4096+at, 0xFF))
				s := open(t, dir, d, Options{})
				for id := range messages.PartitionID(2) {
					w := takeOver(t, s, id)
					if w.next != 16 || w.flushed != 11 {
						t.Fatalf("%s, page %d, byte %d: got next %d, checkpoint %d", name, page, at, w.next, w.flushed)
					}
					w.append(messages.WSID(id))
					w.flush()
				}
				closeStore(t, s)
				closeStore(t, open(t, dir, d, Options{}))
			}
		}
	}
}

// The repair that docs/operating.md describes: the valid meta page's content takes
// the place of the damaged one, and state.db is deleted. Nothing is lost of a store that
// was closed.
func TestMetaPageRepair(t *testing.T) {
	whole, d := runningStore(t)
	for page := range boltfile.MetaPages {
		dir := t.TempDir()
		content := []byte(withByte(whole, format.LogFileName, page*4096+25, 1)[format.LogFileName])
		valid := (1 - page) * 4096
		copy(content[page*4096+boltfile.MetaMagicAt:page*4096+boltfile.MetaEnd], content[valid+boltfile.MetaMagicAt:])
		writeFiles(t, dir, map[string]string{format.LogFileName: string(content)})
		for range 3 {
			s := open(t, dir, d, Options{})
			got := collectEvents(t, s.Log(t.Context(), 0))
			if len(got) != 30 {
				t.Errorf("page %d: got %d events, want 30", page, len(got))
			}
			for id := range messages.PartitionID(2) {
				w := takeOver(t, s, id)
				for range 16 - w.next {
					w.append(messages.WSID(id))
				}
				w.flush()
			}
			closeStore(t, s)
		}
	}
}
