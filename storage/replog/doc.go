// Package replog is the seam between a store and a log that several nodes keep together: each node has a replica of the
// store, and all replicas take the same entries in the same order.
//
//	log.go    Log: what a replicated log does for a store; Replica: what a store does with the entries
//	entry.go  an entry's bytes, and Position: which entries are accepted, on all nodes alike
//	local.go  Local: reads that any replica may answer
//
// Entries stand one behind the other. Each names the head that it was written behind, and counts only if that is the head
// when its turn comes. So of two writers one loses, and an entry of which nobody knows whether it arrived is there, or void
// for ever, as soon as another one was accepted.
//
// The engine has an index of its own for each entry. It may have gaps, and goes up with entries that are void too. A head
// counts the accepted entries only.
//
// Package memory is a log of several nodes in one process, with faults. Package replogtest has the rules as a suite that
// each implementation must pass.
package replog
