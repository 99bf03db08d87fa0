// Package subsdb is subscriptions.db in a transaction: where durable consumers stand (tx.go, position.go), and
// the entries of which a change consists (change.go). Who may change what, and when, is the store's.
package subsdb
