// Package dumps writes the messages that actors receive and send to a file, one line of JSON each,
// and reads such files. It is for whoever wants to see what one command did on its way through the
// system. A program that does not import it has none of it.
//
// A [Writer] is an observer of actors: give it to partition.Options. It writes nothing before it is
// told of which groups of actors, see [Writer.SetGroups].
//
//	actor ──> line ──> buffer of a processor ─┐
//	actor ──> line ──> buffer of a processor ─┴─> one goroutine ──> file
//
// A line is made on the goroutine that sends the message, which never waits for the file: what has no
// room in the buffers is lost. A line that is lost, and one above the group's limit, has used a sequence
// number, so that [Holes] finds what is missing.
//
// A line has the fields ts (time), g (group), k (key), n (node), s (sequence number in the group, from
// 1 on), t (trace id), d (In or Out), cl (class: runtime, system or application), mn (name of the message), mp (its
// protocol: the package that it is of), mk (Regular, Request or Response), m (the message), c
// (joins requests with their answers at one actor). What a message does not have is left out, never
// null: n, t, m and c may be.
package dumps
