package storagetest

import (
	"context"
	"testing"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

// Verify fails the test if the store, which must be at rest, violates an
// invariant. Every test that wrote to a store ends with it.
func Verify(t testing.TB, s storage.Store) {
	t.Helper()
	// The test's own context has ended when its cleanups run.
	report, err := verify.Run(context.WithoutCancel(t.Context()), s, verify.Options{})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	if err := report.Err(); err != nil {
		t.Errorf("verify: %v", err)
	}
}
