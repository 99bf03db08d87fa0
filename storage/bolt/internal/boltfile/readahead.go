package boltfile

import (
	"context"
	"os"
)

// readAheadChunk is how much is read at a time, in bytes.
const readAheadChunk = 1 << 20

// ReadAhead reads files from beginning to end, one after the other, in the background. It
// keeps nothing: the operating system has them in memory then, as far as there is room,
// when they are read in the order of their trees, which on disk is nearly any order. What
// it cannot read it leaves to those who need it. Stop ends it and waits for that.
func ReadAhead(ctx context.Context, d *Directory, names ...string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, readAheadChunk)
		for _, name := range names {
			if file, err := d.OpenFile(name, os.O_RDONLY, 0); err == nil {
				for err == nil && ctx.Err() == nil {
					_, err = file.Read(buffer)
				}
				_ = file.Close() // it was only read
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
