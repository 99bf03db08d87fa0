// Package bolt keeps a store in two bbolt files of one directory, and a write-ahead log.
//
//	log.db     the truth: all events in commit order, and the partitions' epochs
//	log.wal    what was appended last, and log.db has not got yet
//	state.db   projections of the log, each partition's valid up to its checkpoint
//
// A third file, subscriptions.db, is made with the first subscription: where durable consumers stand. A fourth, ids.db, is
// made when a generator takes its first number; open only while one does.
//
// Four goroutines write, each one file: the committer log.wal, the applier log.db, the flusher state.db, and the
// keeper subscriptions.db. Each takes all that waits for it and makes one transaction of it. The flusher, whose memory
// is bounded, makes several, by ranges of workspaces, and moves the checkpoints in the last one.
//
// What the log has and the projections have not yet is the tail, which is in memory: positions, numbers and record
// ids, never bodies or rows. Readers take the tail's view first, then state.db's; the bodies they find in log.db, or
// among those that are pending.
//
// Deleting state.db is harmless: the next Open rebuilds it from the log, as it does with one of an older format.
//
// # The trip of an append
//
//	actors     append.go, partition_effects.go: Sequencer.Append waits in the partition's lane; write hands its batch over
//	sequencer  append.go, queue.go, append_batch.go: a draft is checked, waits for its turn, and gets its numbers
//	bolt       append.go: Submit or Append checks the batch, encodes it, and hands it over
//	           ahead.go: on the way the caller looks up in state.db what ends.go does not remember
//	           committer.go: takes what waits, large requests by themselves; seals, publishes and answers
//	           admit.go: accepts or refuses each request by what is in memory; else it asks ahead.go again
//	logdb      append.go: log.wal or log.db; pending.go: what readers find until applier.go has brought it to log.db
//	wal        writer.go: one synced write
//	bolt       partition.go: what is durable, as readers see it
//	sequencer  append_written.go: the numbers are given, and Sequencer.Append returns
//
// With Options.Log a commit is an entry of a replicated log instead, and comes in on each node alike:
//
//	replica.go  the store as that log sees it: an entry is pending, and published; flushes of a node that does not lead
//	verifier    reads ask whether this node leads: one question for all who read meanwhile
//	logdb       replica.go: what log.db says of that log
//	keeper      replica.go: changes of subscriptions are proposed, and written when they have come in
//	copies      source.go: a replica is made anew of another one
//
// # The rooms
//
//	internal/format    bytes: names, keys, headers, codecs
//	internal/queue     tickets of those who wait, the door for those who do not, and a writer's pace
//	internal/tail      what log.db has and state.db has not yet, in memory
//	internal/deque     what tails are made of
//	internal/meter     what Stats and Figures count
//	internal/schema    what an event may contain
//	internal/boltfile  one bbolt file, guarded, and the held directory
//	internal/wal       log.wal: writer and reader
//	internal/statedb   state.db: heads of workspaces, lists of where events stand, packs of rows, older periods
//	internal/idsdb     ids.db in a transaction
//	internal/logdb     log.db and log.wal as one log: appending, applying, recovering
//	internal/dedup     the index of deduplication ids, and looking ids up
//	internal/fetch     reading events and rows by the places that indexes name
//	internal/intake    the events of another store, taken into a log
//	internal/numbers   the last numbers that events say, compared with those that a flush gives
//	internal/room      whether appends find room
//	internal/verifier  whether this node leads, asked once for all who read meanwhile
//	internal/subsdb    subscriptions.db in a transaction
//	internal/files     the opened files of a store, and whether they belong together
//	internal/keeper    subscriptions: who writes them, what a change must fulfil, where they stand
//	internal/launches  who has ids.db open, one after the other
//	internal/check     pages and contents of the files, as whoever verifies them sees them
//	internal/copies    a copy of a store: its directory and its files
//	internal/expect    what tests of all rooms compare with
//	internal/faulty    a disk and files that fail in tests
//
// Here are opening (open.go lists the steps; scan.go), appending (above; generation.go has what ends.go remembers),
// flushing (flusher.go, collect.go, sweep.go, digits.go, project.go, partition.go), reading (read.go, records.go,
// await.go), what the store says about itself (inspect.go), the doors of subscriptions.go and generators.go, and the tools
// (verify.go, copy.go, import.go, logfile.go). The byte layouts are drawn in docs/format.md and above each codec.
package bolt
