package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/partita-go/partita/storage"
)

// runFollowing prints what is there and then, again and again, what has come. Each time
// the store is opened and closed: while it is open to be read no process can open it for
// writing, and while one has it open for writing nobody can read it. So only what
// processes have written that have closed the store is ever seen, and nobody is kept
// waiting for longer than it takes to print.
func (l *logPrinter) runFollowing(ctx context.Context) error {
	timer := time.NewTimer(l.every)
	defer timer.Stop()
	for {
		err := l.print(ctx)
		if flushErr := l.out.Flush(); err == nil {
			err = flushErr
		}
		switch {
		case errors.Is(err, storage.ErrLocked):
			l.tellWaiting()
		case err != nil:
			return err
		default:
			l.waiting = false
		}
		if l.left == 0 {
			return nil
		}
		timer.Reset(l.every)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tellWaiting says once that the store is locked.
func (l *logPrinter) tellWaiting() {
	if !l.waiting {
		_, _ = fmt.Fprintf(l.notes, "partita: %s is open in a running process; what that writes is shown when it has closed the store\n", l.dir)
	}
	l.waiting = true
}
