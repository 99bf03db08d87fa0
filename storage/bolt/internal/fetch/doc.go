// Package fetch reads events and rows by the places that indexes name, and makes sure that what lies there is what the
// index says.
//
//	place.go   a place, and whether the event there is the one that belongs to it
//	events.go  the events of a source of places, in chunks
//	rows.go    the rows of a sequence: those of state.db, and those that events behind it have written
//	merge.go   several logs as one, in the order of time
//
// Whoever reads knows where the tail ends and state.db begins: that is the store's, which makes the sources.
package fetch
