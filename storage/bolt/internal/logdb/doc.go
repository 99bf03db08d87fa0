// Package logdb is log.db and log.wal as one log: LSN -> bytes. One goroutine appends to it, and all read.
//
//	log.go      the log: its files, Start and Close
//	load.go     where the log ends at an open, and whether the two files belong together
//	settle.go   what a crash has left: log.db is vouched for, gets what log.wal alone has, and then log.wal is removed
//	append.go   log.wal or log.db: one synced write
//	applier.go  brings many commits from log.wal to log.db, in the background
//	replica.go  the entries of a replicated log, which may take the place of log.wal
//	pending.go  what log.wal has and log.db has not
//	read.go     values and events by LSN, wherever they are
package logdb
