// Package storagetest holds what tests of stores, and of everything above a
// store, need:
//
//   - [Run], the conformance suite that every implementation of
//     [storage.Store] must pass;
//   - [Memory], a simple store that honours the whole contract;
//   - [Faulty], a wrapper that injects faults into any store;
//   - [Partition], a driver that builds valid events, batches and flushes;
//   - [Lookout], a context that tells when somebody waits;
//   - [Verify], the check of the invariants for the end of every test.
//
// Its files: suite.go runs the rules, which stand in suite_*.go by what they are about. memory*.go is the simple store.
// faulty*.go and fault.go inject. ledger.go knows which numbers are next, partition.go builds with it. observe.go reads
// all that a store shows, and lookout.go awaits. Tests mutant_*_test.go break the simple store and see that the suite
// notices.
//
// It imports testing, so that only tests may import it.
package storagetest
