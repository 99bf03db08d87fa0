// Package dedup is the index of deduplication ids in state.db: sorted runs of hashes, each in blocks
// (format.go), how they are merged (merge.go), and how an id is looked up (reader.go, all.go).
package dedup
