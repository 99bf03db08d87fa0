// Package raftlog keeps a log on several nodes with Raft: a [replog.Log] on [hashicorp/raft], with raft-wal below it.
//
//	options.go    Options: one node's side of one log
//	create.go     Create: a log begins on a node; Join: a node is new in it; Seed: its replica was made anew
//	life.go       a directory that was made anew under an old name is another one
//	members.go    Members, Add and Remove
//	log.go        Log: Start, Leadership, Trim, Close; what stops a replica
//	append.go     Append, and what raft's answers mean
//	lead.go       when this node begins to lead, and when that ends; Transfer
//	verify.go     Verify: one question for all who wait
//	acks.go       which answers of other nodes count for it
//	machine.go    what raft has committed goes to the replica; snapshots that are positions
//	disk.go       the files of a node, and whether a replica fits them
//	metadata.go   terms, votes and whom a node has met, until the log is closed
//	cache.go      the last entries in memory
//	guard.go      a disk that has failed once is not written again
//	port.go       Port: a node's one TCP port for all its logs
//	hello.go      what stands first in a stream
//	stream.go     a log's streams through the port
//	requests.go   streams through the port that are no log's
//	standing.go   how far a node is
//	past.go       where it stood
//	logger.go     raft's log lines
//
// Entries that raft commits may be void: see package replog. Raft's own leader is not the owner yet: it begins when its
// replica has applied what stands before, and it ends when the outcome of an append is unknown. Then it begins anew, behind
// that entry.
//
// # What stops a node
//
// The replica's Apply fails, an entry is not what was written, the node is too far behind, or its disk has failed: a failed
// write is not repeated, since nobody knows what a disk has after that. The node's part in the log ends then, as if the
// process had ended: it votes no more and takes nothing. [replog.Leadership] says why. Close it, and start it anew.
//
// Raft panics in its own goroutine if it cannot store a term, or cannot read an entry that it must apply. Here that
// goroutine ends instead, and the node stops like any other.
//
// # Licence
//
// hashicorp/raft and raft-wal are under the Mozilla Public License 2.0. A program that imports this package links them.
//
// [hashicorp/raft]: https://pkg.go.dev/github.com/hashicorp/raft
package raftlog
