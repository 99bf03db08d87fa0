// Package messages is the ground floor of partita: the identifiers, numbers
// and offsets, the event, the application's descriptor, the sealed protocol of
// every actor, and the errors that cross packages.
//
// Everything here is plain data. No message holds a context, a channel or a
// function; a deadline travels as a [Timestamp], so that messages can cross a
// process border later.
//
// One rule holds for all numbers: what is stored, cached or merged is the last
// number given out, never the next. Zero means that none was given out yet.
package messages
