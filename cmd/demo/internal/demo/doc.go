// Package demo is the demo program behind its main function.
//
// Reading the source: cli.go finds out what is wanted; show.go is the main show,
// step by step; commits.go is the application, which any user of partita would
// write like this; periods.go counts its days and years; feed.go runs commits as commands; crash.go is the process that
// is killed, and the one that kills it; replay.go, load.go and outbox.go are the
// other commands, and outbox_delivery.go is what delivers the outbox.
package demo
