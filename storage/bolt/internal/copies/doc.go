// Package copies makes copies of stores: a directory that is there as a whole or not at all (into.go), and each file,
// page by page or entry by entry (target.go). Of what a copy consists is the store's.
package copies
