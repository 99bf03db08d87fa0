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
// It imports testing, so that only tests may import it.
package storagetest
