// Package transfer writes the events of a store to a file that any program can read, and makes a store of such a file:
// with the same number of partitions, or another one.
//
// # The file
//
// It is NDJSON: each line is one JSON document and ends with a line feed.
//
//	{"partita_export":1,"descriptor":{…},"only":{…},"launches":[…],"events":2,"crc":"…"}
//	{"n":1,"event":{…},"crc":"…"}
//	{"n":2,"event":{…},"crc":"…"}
//	{"end":2,"sha256":"…","crc":"…"}
//
// An event is as the HTTP API has it, without its partition and the offset there: they follow from the order, and with
// another number of partitions they are made anew. So the lines of events do not depend on the number of partitions, but
// for the epochs: these are kept with the same number, since ids of deliveries are made of them. With another one they
// would be out of order, and all are 1.
//
// The events are in the order of their registration times and, where these are equal, in commit order. A workspace's
// events are so in the order of its log, a partition's in the order of its log; and whatever workspaces are put together
// in a new partition, no time falls in it, and a workspace does not overtake what it may have seen. Events that were
// appended together are not parted. A store that is made by an import has the events in the order of the file: exported
// again, the lines are the same, whatever its number of partitions, but for the epochs.
//
// # What is noticed
//
// Each line ends with a CRC-32C. That of the first line covers the line, those of the events cover all lines of events up
// to there. With the number n that says which line is missing, doubled, moved or changed. The last line has the SHA-256 of
// all before it: so the first line belongs to the others, and a file without a last line is not whole.
//
// What was read is written again and compared with the line: so nothing is read that would not be exported as it stands
// there, be it an unknown member, a white space, or a number in another form.
//
// # Subscriptions
//
// Their positions are in a file of their own, with lines of the same form. It has the SHA-256 of the events that it
// belongs to. With the same number of partitions positions and parked events stay what they were. With another one, the
// position in the log of a workspace stays; that in the logs of all partitions becomes, in each new one, the first event
// that was not delivered in the old ones. What comes behind and was delivered already is delivered again: at least once,
// as ever. Of what was parked there, what lies behind the new position is not parked any more, since it is delivered. A
// subscription to one partition has no meaning among others, and is refused.
//
// # How it is made
//
// Events are encoded, and lines read, by several goroutines, a batch each, in order: see ordered. Memory is bounded by
// the batches under way; by package bolt, which merges the partitions' logs, writes log.db in transactions of 8 MiB, and
// rebuilds and verifies the rest in bounded memory; and by the subscriptions, which are in memory as a whole.
//
// An import that was killed is gone on with: the file is read from its beginning, and what log.db has is compared.
package transfer
