// Package check shows the files of a store to those who verify them: their pages, and what stands in them.
//
//	pages.go        each file's pages, header and keys
//	image.go        the log and the subscriptions, as an image
//	image_state.go  the buckets of state.db
//	image_index.go  what nothing in state.db leads to
//	image_log.go    the image of log.db alone
package check
