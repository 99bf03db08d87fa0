// Package keeper keeps the subscriptions of a store: where durable consumers stand, in a file of their own that is made
// with the first.
//
//	keeper.go   the only writer of subscriptions.db: one commit for all that wait
//	change.go   what the requests change, and why one is refused
//	read.go     where a subscription stands, and whether this log has come there
//	replica.go  changes that are entries of a replicated log
//	backlog.go  those that the log has brought and the file has not yet
//
// What stands in the file is subsdb's; where the logs end it is told by the store.
package keeper
