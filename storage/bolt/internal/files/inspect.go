package files

import (
	"errors"
	"io/fs"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
	"github.com/partita-go/partita/storage/bolt/internal/subsdb"
)

// SubscriptionsInspection is about subscriptions.db.
type SubscriptionsInspection struct {
	boltfile.FileInspection
	// Count is how many subscriptions there are.
	Count uint64
}

// IDsInspection is about ids.db.
type IDsInspection struct {
	boltfile.FileInspection
	// Launches are those that have numbered generators of decimal ids, in their order.
	Launches []idsdb.Launch
}

// WALInspection is about log.wal.
type WALInspection struct {
	Name string
	// Format is the file's format version.
	Format uint16
	// Size is in bytes.
	Size int64
	// Pending is how many events it has that log.db has not.
	Pending uint64
}

// InspectWAL returns nil if there is no file.
func (s *Set) InspectWAL() (*WALInspection, error) {
	info, err := s.Directory.Stat(format.WALFileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // as said
	}
	if err != nil {
		return nil, err
	}
	_, values := s.Log.Pending()
	return &WALInspection{Name: format.WALFileName, Format: format.WALFormat, Size: info.Size(), Pending: uint64(len(values))}, nil
}

// InspectSubscriptions returns nil if there is no file.
func (s *Set) InspectSubscriptions() (*SubscriptionsInspection, error) {
	f := s.Subscriptions.Load()
	if f == nil {
		return nil, nil //nolint:nilnil // as said
	}
	in := &SubscriptionsInspection{}
	var err error
	if in.FileInspection, err = f.Inspect(format.RoleSubscriptions); err != nil {
		return nil, err
	}
	err = subsdb.View(f, func(tx subsdb.Tx) (err error) {
		in.Count, err = tx.Count()
		return err
	})
	return in, err
}

// InspectIDs returns what stands in an ids.db that is open.
func InspectIDs(f *boltfile.File) (in *IDsInspection, err error) {
	in = &IDsInspection{}
	if in.FileInspection, err = f.Inspect(format.RoleIDs); err == nil {
		in.Launches, err = idsdb.Launches(f)
	}
	return in, err
}

// Figures returns the sizes of the files that are open, and of log.wal.
func (s *Set) Figures() ([]storage.FileFigures, error) {
	var all []storage.FileFigures
	for _, f := range []struct {
		file *boltfile.File
		role format.Role
	}{{s.Log.File, format.RoleLog}, {s.State, format.RoleState}, {s.Subscriptions.Load(), format.RoleSubscriptions}} {
		if f.file == nil {
			continue
		}
		in, err := f.file.Inspect(f.role)
		if err != nil {
			return all, err
		}
		all = append(all, storage.FileFigures{Name: in.Name, Size: in.Size, Pages: in.Pages, FreePages: in.FreePage})
	}
	info, err := s.Directory.Stat(format.WALFileName)
	switch {
	case err == nil:
		all = append(all, storage.FileFigures{Name: format.WALFileName, Size: info.Size()})
	case !errors.Is(err, fs.ErrNotExist):
		return all, err
	}
	return all, nil
}
