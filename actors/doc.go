// Package actors turns the pure cores of partita into actors. What they stand on, mailboxes, dispatcher, ports and
// supervision, is in package base.
//
// An actor never blocks, except for leaves, which do nothing else: they call the store and tell their parent.
//
//   - partition*.go: the partition, its handle and how it is stopped, what it does for its core (effects), and its
//     alarms; clock_guard.go, place.go.
//   - leaves.go, appender.go, actualizer.go: what a partition lets others do.
//   - client.go, append*.go, transaction*.go: what callers hold; outcome.go says what an error of the store means.
//   - command*.go: command processors. lane*.go, deliverer.go, permits.go: lanes of subscriptions.
//   - standing.go, figures.go, watchdog.go, trace.go: what is seen from outside, and what notices that nothing gets on.
package actors
