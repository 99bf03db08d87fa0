package copies

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
)

// UnfinishedSuffix is what the name of a directory ends with in which a store is made that can be gone on with.
const UnfinishedSuffix = ".import"

// Unfinished names the directory in which a store is made that will have a name.
func Unfinished(dir string) string { return filepath.Clean(dir) + UnfinishedSuffix }

// IntoKept is [Into] for what takes long: the directory has a name of its own beside the final one, and stays if build
// fails, or is killed. The next call goes on with it.
func IntoKept(dir string, build func(unfinished string) error) (err error) {
	if dir, err = placeFor(dir); err != nil {
		return err
	}
	unfinished := Unfinished(dir)
	if err := os.Mkdir(unfinished, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := build(unfinished); err != nil {
		return err
	}
	if err := boltfile.SyncDir(unfinished); err != nil {
		return err
	}
	return publishDir(unfinished, dir)
}
