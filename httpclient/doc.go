// Package httpclient asks a server of partita (`partita serve`, or package httpapi) for what a program that embeds
// partita has: it appends events, reads and follows logs, and reads numbers, records and the state of partitions.
//
//	client, err := httpclient.New("http://localhost:7420", httpclient.Options{})
//	done, err := client.Append(ctx, partition.AppendTo{Workspace: tenant, Kind: shop}, draft)
//	for event, err := range client.FollowWLog(ctx, tenant, 1) {
//
// The methods have the names, arguments and results of [partition.Sequencer] and [partition.Reader]: a program can name
// those it needs in an interface, and be given either. Errors are the same, too: errors.Is finds what it would find
// there. [httpapi.ProblemError] is what the server has said.
//
// # What is repeated
//
// A request is repeated as long as it may succeed later, until its context ends: when the server cannot be reached, has
// gone in the middle, or says that it is busy, starting or stopping. The wait doubles, is never the same for two clients,
// and is as long as the server says at the least (Retry-After). When the context would end before the next try, the last
// error is returned at once. A context without an end waits for ever: give each request a deadline.
//
// An append is repeated under its deduplication id, and so is written once. One without an id is given a random one. If
// the context ends while it is not known whether the event was written, the error is ErrOutcomeUnknown. So it is if a later
// try is refused by something else than the partition, which alone knows of the earlier ones: a proxy, or a server that
// wants another token by now. Whoever must know then gives the id himself, keeps it, and appends once more.
//
// A log that is followed goes on behind the last event that was given, on whichever connection: no event is left out or
// comes twice.
package httpclient
