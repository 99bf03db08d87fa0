package bolt

import (
	"bytes"
	"context"
	"hash/fnv"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/verify"
)

func fnvOf(b []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(b)
	return sum.Sum64()
}

// FuzzFiles writes bytes anywhere into the files of a store: Verify and what opens them
// never panic nor hang, and where Verify finds nothing, everything reads as it was
// written.
func FuzzFiles(f *testing.F) {
	dir, events := smallStore(f)
	sound := map[bool][]byte{false: usedOf(f, filepath.Join(dir, logFileName)), true: usedOf(f, filepath.Join(dir, stateFileName))}
	f.Add(false, uint32(0), []byte{})
	f.Add(true, uint32(4096+32), []byte{0xff, 0xff})
	f.Add(false, uint32(3*4096), []byte("any page"))
	f.Add(true, uint32(5*4096+8), []byte{1, 0, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, state bool, at uint32, data []byte) {
		name := logFileName
		if state {
			name = stateFileName
		}
		from := int(at) % len(sound[state])
		data = data[:min(len(data), len(sound[state])-from)]
		overwrite(t, filepath.Join(dir, name), int64(from), data)
		defer overwrite(t, filepath.Join(dir, name), int64(from), sound[state][from:from+len(data)])
		report, err := Verify(t.Context(), dir, verify.Options{MaxMemory: 1 << 20})
		s, openErr := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
		if openErr != nil {
			if err == nil && report.FaultCount == 0 {
				t.Fatalf("Verify found nothing, and the store does not open: %v", openErr)
			}
			return
		}
		defer closeStore(t, s)
		got, readErr := readAll(t.Context(), s)
		if err != nil || report.FaultCount > 0 {
			return
		}
		if readErr != nil || !reflect.DeepEqual(got, events) {
			t.Fatalf("Verify found nothing; got %+v, %v, want %+v", got, readErr, events)
		}
	})
}

// usedOf returns a file's pages without the empty ones at its end.
func usedOf(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(content, "\x00"))
	return content[:min(len(content), (end/os.Getpagesize()+1)*os.Getpagesize())]
}

func overwrite(t *testing.T, path string, at int64, data []byte) {
	t.Helper()
	handle, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handle.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
	if err := handle.Close(); err != nil {
		t.Fatal(err)
	}
}

// smallStore returns a closed store with events in both files, and the events.
func smallStore(t testing.TB) (dir string, events []messages.Event) {
	t.Helper()
	dir = t.TempDir()
	s, err := Open(t.Context(), dir, testDescriptor(2, messages.TrustNone), Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := takeOver(t, s, 1)
	w.append(1, 3, 1)
	w.flush()
	w.append(3, 5)
	events, err = readAll(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	return dir, events
}

// readAll reads every log of a store that smallStore made.
func readAll(ctx context.Context, s *Store) (events []messages.Event, err error) {
	for p := range messages.PartitionID(2) {
		for e, err := range s.PLog(ctx, p, 1) {
			if err != nil {
				return nil, err
			}
			events = append(events, e)
		}
	}
	for _, ws := range []messages.WSID{1, 3, 5} {
		for e, err := range s.WLog(ctx, ws, 1) {
			if err != nil {
				return nil, err
			}
			events = append(events, e)
		}
		if _, err := s.Numbers(ctx, ws); err != nil {
			return nil, err
		}
	}
	return events, nil
}
