// Package subsdb is subscriptions.db in a transaction: where durable consumers stand (tx.go, position.go), the entries
// of which a change consists (change.go), and whether a log has the events on which positions rest (rests.go). Who may
// change what, and when, is the store's.
package subsdb
