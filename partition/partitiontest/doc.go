// Package partitiontest has what tests of programs need that are built on partita: the application over a store in
// memory, with a clock that the test moves, and everything that can go wrong on demand.
//
//	app := partitiontest.Deploy(t, partition.Application{Descriptor: descriptor}, partitiontest.Options{})
//	app.Append(to, draft)
//	app.Clock.AdvanceTo(newYear)
//	app.Append(to, draft)
//	app.Crash()
//	app.Restart()
//	app.AssertNumbers(tenant, messages.SequencePeriod{Seq: invoices, Period: 2027_01_01}, 1, 1)
//
// What is where:
//
//   - app.go: [Deploy], [App.Restart], [App.Crash];
//   - faults.go: the faults by name, and [App.CrashInNextWrite];
//   - tools.go: [App.Append], the waits, and the actor that the test acts for;
//   - assert.go: gapless logs and numbers.
//
// Nothing sleeps, and no test needs to: a call returns when what it is for has happened, and fails the test if it does
// not happen in time. The store is [storagetest.Memory], which passes the same suite as the store on disk; what a disk
// does to files is not tested with it.
//
// It imports testing: only tests may import it.
package partitiontest
