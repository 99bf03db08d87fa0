package boltfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// An error of the file system names the file once.
func TestOpenNamesTheFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	if _, err := open(t, path, &bbolt.Options{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) || strings.Count(err.Error(), path) != 1 {
		t.Errorf("got %v, want %v with the file's name once", err, os.ErrNotExist)
	}
}
