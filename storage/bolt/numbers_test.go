package bolt

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// A bit of a key or of a head is flipped, wherever they lie in the file:
// the workspace's numbers are an error or right, never fewer or lower.
func TestDamagedNumberKeys(t *testing.T) {
	t.Parallel()
	dir, d := t.TempDir(), testDescriptor(1, messages.TrustNone)
	s := open(t, dir, d, Options{})
	w := takeOver(t, s, 0)
	workspaces := []messages.WSID{0x71a3_5c19_e2b4_8d02, 0x71a3_5c19_e2b4_8d06, 0x93f1_24d8_6ac0_1b02}
	w.append(workspaces...)
	w.append(workspaces[1])
	w.flush()
	want := make(map[messages.WSID]storage.WorkspaceNumbers)
	for _, ws := range workspaces {
		n, err := s.Numbers(t.Context(), ws)
		if err != nil {
			t.Fatal(err)
		}
		want[ws] = n
	}
	closeStore(t, s)
	path := filepath.Join(dir, format.StateFileName)
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found, flips := 0, 0
	for _, n := range want {
		key := format.AppendWorkspaceKey(nil, n.Workspace)
		for at := bytes.Index(intact, key); at >= 0; {
			for i := range 16 { // the key, and the head behind it
				flips++
				damaged := bytes.Clone(intact)
				damaged[at+i] ^= 1 << (flips % 8)
				if err := os.WriteFile(path, damaged, 0o600); err != nil {
					t.Fatal(err)
				}
				found += numbersAfterDamage(t, dir, d, want)
			}
			next := bytes.Index(intact[at+1:], key)
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	if found < flips/4 {
		t.Errorf("of %d flips %d were noticed: most did not hit the page in use", flips, found)
	}
}

// numbersAfterDamage returns 1 if anything was noticed.
func numbersAfterDamage(t *testing.T, dir string, d messages.Descriptor, want map[messages.WSID]storage.WorkspaceNumbers) int {
	t.Helper()
	s, err := Open(t.Context(), dir, d, Options{})
	if err != nil {
		return 1
	}
	defer closeStore(t, s)
	noticed := 0
	for ws, n := range want {
		got, err := s.Numbers(t.Context(), ws)
		switch {
		case errors.Is(err, storage.ErrDamaged):
			noticed = 1
		case err != nil || !reflect.DeepEqual(got, n):
			t.Fatalf("workspace %d: got %+v, %v, want %+v or damage", ws, got, err, n)
		}
	}
	return noticed
}
