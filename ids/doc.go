// Package ids gives ids that need no partition: for traces, temporary objects and the like, where an order helps and gaps
// do no harm. Numbers without gaps, such as those of invoices, are a partition's: see package partition.
//
//	trace.go              TraceID: its layout, parts, order and age
//	trace_generator.go    TraceGenerator: many ids a second, from many goroutines, without a store
//	lane.go               what each processor takes ids from
//	clock.go              where the time comes from
//	decimal.go            DecimalID: its layout and parts, legible in decimal
//	decimal_generator.go  DecimalGenerator: ids for ever, with a number out of a store
//	permutation.go        Permutation: ids that do not look sequential
//	text.go               what both ids are as text, in JSON and in logs
//
// All ids have 63 bits and are never 0: they fit into signed integers of 64 bits, and 0 can say that there is none. In
// JSON they are strings, since a program that reads numbers as float64 would change them.
//
// An id writes itself to log/slog as text (LogValue), and to zap with zap.Stringer or zap.Any.
//
// docs/ids.md has the reasons, and says which id is for what.
package ids
