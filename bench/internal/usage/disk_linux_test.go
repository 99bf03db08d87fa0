package usage

import (
	"path/filepath"
	"testing"
)

func TestDevice(t *testing.T) {
	for device, want := range map[uint64][2]uint64{0x801: {8, 1}, 0xfe00: {254, 0}, 0x10000803: {8, 0x10003}} {
		if got := [2]uint64{major(device), minor(device)}; got != want {
			t.Errorf("%#x: got %v, want %v", device, got, want)
		}
	}
}

func TestDiskOfNoDirectory(t *testing.T) {
	if _, err := DiskWritten(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("got no error")
	}
}
