// Package memory keeps a replicated log in the memory of one process, for tests and simulations: several nodes, and what
// can go wrong between them.
//
//	cluster.go  Cluster: the nodes, who leads, what was written, and the faults
//	log.go      Log: one node's side, a replog.Log
//	fate.go     what becomes of an append, and of its answer
//
// Nobody is elected: who leads is said. A node that is cut off believes that it leads until it wants something.
package memory
