// Package sim holds the deterministic simulation: the real actors, typed clients,
// command processors, subscriptions and readers of the feed over a simulated store, clock
// and process, all of it decided by one seed.
//
// A run lives in a bubble of testing/synctest, which tells when nothing moves any more.
// Every mailbox run, every message after the first of a run, every call of the store
// before it is done and now and then before it is answered, and every step of a client
// waits at a gate; the scheduler opens one gate at a time, in seeded order, and waits
// until nothing moves again. So one goroutine runs at a time, and a seed gives the same
// history whenever it is run.
//
// A failing seed is printed with its history; make sim SIMSEED=n runs it again.
package sim
