// Package boltfile is one bbolt file of a store, and the directory that holds it. Everything that touches bbolt
// goes through it: what panics on a damaged file becomes an error here.
//
//	directory.go, names.go    the held directory: making, linking, removing and syncing names
//	file.go                   transactions that catch panics, and what a failed commit means
//	snapshot.go               read transactions that serve many reads
//	header.go, meta.go        what each open checks
//	pages.go, walk.go         pages, as the bytes of the file show them, and the walk through them:
//	trees.go, freelist.go     all of a tree, and the free pages
//	upper.go                  the upper pages of the trees, at each open
//	scan.go, ascend.go, copy.go, inspect.go, free.go, arena.go, readahead.go   ways to read and fill buckets
package boltfile
