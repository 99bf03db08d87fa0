// Package intake takes the events of another store into a log that is being made (intake.go): each gets its place, is
// checked there as an append would check it, and is compared with what an attempt before has left. What is derived from
// the log, and what is beside it, is the store's.
package intake
