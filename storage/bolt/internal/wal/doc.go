// Package wal is log.wal, the write-ahead log of a store: its bytes (format.go), its writer (writer.go), and
// the reader of one that a crash has left (reader.go). What is brought to log.db, and when, is logdb's.
package wal
