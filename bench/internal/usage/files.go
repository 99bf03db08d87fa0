package usage

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Size is what a file, or all files of a directory, take.
type Size struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// Total adds sizes.
func Total(sizes []Size) int64 {
	total := int64(0)
	for _, s := range sizes {
		total += s.Bytes
	}
	return total
}

// SizeOf returns what a file, or all files below a directory, take. Files that are
// removed meanwhile do not count.
func SizeOf(path string) (Size, error) {
	size := Size{Name: filepath.Base(path)}
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = entry.Info(); err == nil {
				size.Bytes += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return size, err
}
