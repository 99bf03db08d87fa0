package calendar_test

import (
	"archive/zip"
	"go/build"
	"os"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/calendar"
)

// zoneinfo is what time/tzdata embeds. The tests use it, and not what this machine has.
var zoneinfo = filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip")

func TestMain(m *testing.M) {
	if err := os.Setenv("ZONEINFO", zoneinfo); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func load(t testing.TB, name string) calendar.Zone {
	t.Helper()
	z, err := calendar.LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// allZones are the names of the embedded zones, without those that are another one's data.
func allZones(t *testing.T) []string {
	t.Helper()
	r, err := zip.OpenReader(zoneinfo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	type data struct {
		sum  uint32
		size uint64
	}
	var names []string
	seen := make(map[data]bool)
	for _, f := range r.File {
		d := data{f.CRC32, f.UncompressedSize64}
		if f.FileInfo().IsDir() || seen[d] {
			continue
		}
		seen[d] = true
		names = append(names, f.Name)
	}
	return names
}
