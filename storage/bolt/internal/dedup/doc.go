// Package dedup is the index of deduplication ids in state.db: sorted runs of hashes, each in blocks.
//
//	format.go  runs and blocks as bytes
//	merge.go   how runs are merged
//	reader.go  hashes in one transaction: which events may have an id
//	lookup.go  ids in state.db and the log: which event has it
//	filter.go  which hashes the index cannot have, known in memory
//	layer.go   what a filter is made of
//	all.go     all that the index has, for whoever checks it
package dedup
