package bench

import "syscall"

// synced lets each write be on the disk when it returns, as those of log.wal are.
const synced = syscall.O_DSYNC
