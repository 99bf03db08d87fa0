package usage

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// sectorSize is the unit of the kernel's counts, whatever the disk's own is.
const sectorSize = 512

// DiskWritten returns how many bytes the disk that a directory lies on has
// written, for whomever.
func DiskWritten(dir string) (int64, error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(dir, &stat); err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	name := fmt.Sprintf("/sys/dev/block/%d:%d/stat", major(stat.Dev), minor(stat.Dev))
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	// read I/Os, merges, sectors, ticks, then the same of writes.
	fields := strings.Fields(string(text))
	if len(fields) < 7 {
		return 0, fmt.Errorf("%s: got %d fields, want at least 7", name, len(fields))
	}
	sectors, err := strconv.ParseInt(fields[6], 10, 64)
	return sectors * sectorSize, err
}

func major(device uint64) uint64 { return device>>8&0xfff | device>>32&^uint64(0xfff) }

func minor(device uint64) uint64 { return device&0xff | device>>12&^uint64(0xff) }
