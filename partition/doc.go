// Package partition is what users of partita import: it deploys an application's
// partitions as actors over a store, and gives typed clients to their sequencers.
//
//	parts := partition.NewAppParts(system, partition.Options{})
//	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
//	err = app.Ready(ctx)
//	sequencer, err := app.SequencerOf(workspace)
//	tx, err := sequencer.Start(ctx, kind, workspace)
//	number, err := tx.Next(ctx, invoices)
//	err = tx.Commit(ctx, body)
//
// What was written is read by a [Reader]: a workspace, a partition or the whole application,
// in pages or followed as it grows.
//
//	for event, err := range app.Reader().FollowWLog(ctx, workspace, 1) {
//		// ends with ctx
//	}
//
// A [Subscription] does it for a handler, and remembers where that stands.
//
// Package partitiontest has what tests of such programs need.
//
// Package partita, the module's root, does the first three steps in one, with a store and an actor system of its own.
//
// Numbers are gapless and strictly ordered per workspace and sequence, because a
// number counts as given only when the event that holds it is durable.
package partition
