// Package queue is how callers and the one goroutine that serves them agree: a ticket that is claimed,
// answered or given up; a door for requests that nobody waits for; and a writer's pace, by which it gathers those who are about to come.
package queue
