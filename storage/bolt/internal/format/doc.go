// Package format is how a store looks on disk, in bytes: file names, buckets, keys, headers, and the
// codecs of events, rows, sealed values and subscriptions. It opens no file. The layouts are drawn above
// each codec and in docs/format.md.
//
//	role.go, header.go        which file it is, of which store, in which format
//	keys.go                   buckets and keys
//	event.go, sections.go     an event's value in bucket log
//	head.go, list.go, pack.go what state.db has of a workspace, of a log, and rows
//	values.go, witness.go     small values, each sealed with a checksum
//	subscription.go           definitions and parked events
package format
