package faulty

import (
	"errors"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
)

// Commits are those of a bbolt file. What fails before one is a commit that has written nothing; what fails behind it
// is one that was written, and not synced.
type Commits struct{ Before, After Point }

// CommitsOf comes between the commits of a file from now on.
func CommitsOf(f *boltfile.File) *Commits {
	c, commit := new(Commits), f.Commit
	f.Commit = func(tx *bbolt.Tx) error {
		if err := c.Before.pass(); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		if err := commit(tx); err != nil {
			return err
		}
		return c.After.pass()
	}
	return c
}
