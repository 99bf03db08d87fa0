package partition

import (
	"errors"

	"github.com/partita-go/partita/storage"
)

// Errors of deploying and routing.
var (
	// ErrDeployed is returned when an application of that name is deployed already.
	ErrDeployed = errors.New("application is deployed already")
	// ErrUnknownApplication is returned when no application of that name is deployed.
	ErrUnknownApplication = errors.New("unknown application")
	// ErrUnknownPartition is returned when an application has no such partition.
	ErrUnknownPartition = errors.New("unknown partition")
	// ErrStoreInUse is returned when an application is deployed over the store already, by
	// whichever AppParts: Undeploy gives the store back.
	ErrStoreInUse = storage.ErrInUse
	// ErrClosed is returned when the AppParts is closed.
	ErrClosed = errors.New("AppParts is closed")
	// ErrNotClean is returned when an application was undeployed, but not everything
	// could be flushed or a leaf hangs in storage. Nothing is lost: the log has it,
	// and the next start replays it.
	ErrNotClean = errors.New("application did not stop cleanly")
)
