// Package meter counts what a store does.
//
//	meter.go   its commits and flushes, and what opening it took
//	spread.go  values by their size
//
// What it holds at the moment is counted where that is: in the tails and in the files.
package meter
