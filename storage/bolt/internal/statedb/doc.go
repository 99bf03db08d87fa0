// Package statedb reads state.db: where events stand in the log (logs.go), last numbers (numbers.go) and rows
// (rows.go). No page of it has a checksum: what is not found where it must be is damage.
package statedb
