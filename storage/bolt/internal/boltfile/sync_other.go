//go:build !linux

package boltfile

// CreateSynced makes a file, which must not be there, and writes its first block. The file is nil if it could not be
// made.
func (d *Directory) CreateSynced(name string, block []byte) (Synced, error) {
	f, err := d.MakeFile(name, 0)
	if err != nil {
		return nil, err
	}
	s := synced{f}
	return s, s.WriteSynced(block, 0)
}

func (s synced) WriteSynced(b []byte, at int64) error {
	if _, err := s.WriteAt(b, at); err != nil {
		return err
	}
	return s.Sync()
}
