//go:build !linux

package bolt

import "os"

func createSynced(d *directory, name string, block []byte) (*os.File, error) {
	f, err := d.makeFile(name, 0)
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
