// Package bolt keeps a store in two bbolt files of one directory, and a write-ahead log.
//
//	log.db     the truth: all events in commit order, and the partitions' epochs
//	log.wal    what was appended last, and log.db has not got yet
//	state.db   projections of the log, each partition's valid up to its checkpoint
//
// A third file, subscriptions.db, is made with the first subscription: where durable
// consumers stand. The keeper owns it, and writes all moves that wait in one transaction.
//
// An append writes to log.wal only, at its end. One goroutine, the committer, owns
// that file: it takes all appends that wait and makes one synced write of them.
// Another, the applier, brings many of those to log.db in one transaction. A third,
// the flusher, owns state.db and writes what flushes ask for in big transactions
// sorted by key. What the log has and the projections
// have not yet is the tail, which is in memory: positions, numbers and record
// ids, never bodies or rows. Readers take the tail's view first, then state.db's;
// the bodies they find in log.db, or among those that are pending.
//
// Deleting state.db is harmless: the next Open rebuilds it from the log.
//
// Reading the source: open.go and scan.go (how a store comes to life), admit.go
// and committer.go (an append), wal.go and applier.go (its way to log.db), flusher.go and project.go (a flush), read.go,
// guard.go (everything that touches bbolt goes through it). The byte layouts are
// drawn in docs/format.md and above each codec.
package bolt
