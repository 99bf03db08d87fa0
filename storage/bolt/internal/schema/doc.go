// Package schema says what an event of an application may contain: kinds, sequences, numbers, records, and
// which events are appended together.
package schema
