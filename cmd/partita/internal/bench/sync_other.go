//go:build !linux

package bench

import "os"

// synced lets each write be on the disk when it returns.
const synced = os.O_SYNC
