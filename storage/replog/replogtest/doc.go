// Package replogtest has the rules of a replicated log as a suite, which each implementation of [replog.Log] must pass.
//
//	suite.go    Run, and what an implementation brings along: Cluster, Doubter
//	rig.go      nodes with replicas that remember what they were given
//	append.go   the rules of Append
//	lead.go     the rules of leadership, Verify and Transfer
//	restart.go  the rules of Start, Trim and Close
//	random.go   all of it at once, by seed
//
// It imports testing, so that only tests may import it.
package replogtest
