// Package launches gives out the numbers of generators of ids from the ids.db of a store that is in use: one call has the
// file open at a time, and only as long as it takes. What stands in the file is idsdb's.
package launches

import (
	"context"
	"errors"

	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
)

// Book is the ids.db of a store.
type Book struct {
	files *files.Set
	// Opened is told of the file whenever it was opened to be written: tests let it fail.
	Opened func(*boltfile.File)
	// open says whether the store is.
	open func() error
	// taken is full as long as somebody has the file open.
	taken chan struct{}
	// ended is closed when nobody has it any more.
	ended chan struct{}
}

// New returns the book of a store, of which open says whether it is open.
func New(f *files.Set, open func() error) *Book {
	return &Book{files: f, Opened: func(*boltfile.File) {}, open: open, taken: make(chan struct{}, 1), ended: make(chan struct{})}
}

// End waits until nobody has the file, and lets nobody have it any more.
func (b *Book) End() {
	b.taken <- struct{}{}
	close(b.ended)
}

// take waits until nobody else has the file. It returns ErrClosed once the store is closing.
func (b *Book) take(ctx context.Context) (release func(), err error) {
	select {
	case b.taken <- struct{}{}:
	case <-b.ended:
		return nil, b.open()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { <-b.taken }
	if err := b.open(); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// Next gives each of some generators the next number of its launch. It makes the file if it is not there.
func (b *Book) Next(ctx context.Context, all ...*format.Generator) error {
	release, err := b.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	return b.write(ctx, func(f *boltfile.File) error { return idsdb.Next(f, all...) })
}

// Raise notes numbers that a replicated log has given: they are durable when it returns. It may be called until End.
func (b *Book) Raise(all []format.Generator) error {
	b.taken <- struct{}{}
	defer func() { <-b.taken }()
	return b.write(context.Background(), func(f *boltfile.File) error { return idsdb.Raise(f, all) })
}

// Read lets fn read the file, if there is one. Nobody else has it meanwhile, and a replicated log may wait for it.
func (b *Book) Read(ctx context.Context, fn func(*boltfile.File) error) error {
	release, err := b.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	f, err := b.files.OpenIDs(ctx)
	if f == nil || err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

// Close lets no launch that is there give a number any more. The store is nobody else's.
func (b *Book) Close(ctx context.Context) error {
	there, err := b.files.Directory.PresentWhole(format.IDsFileName)
	if !there || err != nil {
		return err
	}
	return b.write(ctx, idsdb.Close)
}

// TakeOver notes launches of another store: none of them gives a number here. The store is nobody else's.
func (b *Book) TakeOver(ctx context.Context, launches []uint32) error {
	if len(launches) == 0 {
		return nil
	}
	return b.write(ctx, func(f *boltfile.File) error {
		all := make([]*format.Generator, len(launches))
		for i, launch := range launches {
			all[i] = &format.Generator{Launch: launch}
		}
		if err := idsdb.Next(f, all...); err != nil {
			return err
		}
		return idsdb.Close(f)
	})
}

func (b *Book) write(ctx context.Context, fn func(*boltfile.File) error) error {
	f, err := b.files.MakeIDs(ctx)
	if err != nil {
		return err
	}
	b.Opened(f)
	return errors.Join(fn(f), f.Close())
}
