//go:build !linux

package bolt

import "os"

func createSynced(path string, block []byte) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return f, writeSynced(f, block, 0)
}

func writeSynced(f *os.File, b []byte, at int64) error {
	_, err := f.WriteAt(b, at)
	if err != nil {
		return err
	}
	return f.Sync()
}
