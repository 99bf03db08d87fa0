//go:build !linux

package wal

import (
	"os"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
)

// CreateSynced makes a file for WriteSynced, which must not be there, and writes its first block.
func CreateSynced(d *boltfile.Directory, name string, block []byte) (*os.File, error) {
	f, err := d.MakeFile(name, 0)
	if err != nil {
		return nil, err
	}
	return f, WriteSynced(f, block, 0)
}

// WriteSynced writes b, and returns when it is durable.
func WriteSynced(f *os.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	if err != nil {
		return err
	}
	return f.Sync()
}
