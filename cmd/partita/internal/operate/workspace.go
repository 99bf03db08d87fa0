package operate

import (
	"context"
	"fmt"
	"iter"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// noEvent is the error of every command that is asked about a workspace which has no event: a number that was mistyped must
// not look like a tenant without events.
func noEvent(ws messages.WSID) error {
	return fmt.Errorf("%w: workspace %d has no event", partition.ErrNoEvent, ws)
}

// checkWorkspaces returns an error unless each workspace has an event.
func checkWorkspaces(ctx context.Context, s reader, all ...messages.WSID) error {
	for _, ws := range all {
		next, stop := iter.Pull2(s.WLogWithLSN(ctx, ws, 1))
		_, _, there := next() // if it is damaged, that is told by whoever wants to read it
		stop()
		if !there {
			return noEvent(ws)
		}
	}
	return nil
}
