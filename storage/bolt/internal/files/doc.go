// Package files is the opened files of a store, and what all who open them look at first: that each is whole as far as
// its header, roots and pages show, and that they belong together. What stands in them is for others.
//
//	set.go     the held directory, and each file's limits
//	open.go    the files of a store that is there; log.db alone
//	header.go  each file's header: read, compared and written
//	create.go  new files: complete and synced before they have their names
//	stand.go   how far state.db is, and the epochs of log.db
//	origin.go  whether state.db is of this log, and this log whole
//	ask.go     the same for a store that may be damaged: restoring and verifying
//	fill.go    log.db of a store that is being made by itself
//	ids.go     ids.db, which is open for a moment only
//	inspect.go what the files say about themselves, and how large they are
package files
