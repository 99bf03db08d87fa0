package storagetest

import (
	"strings"

	"github.com/partita-go/partita/storage"
)

var claimChecks = []check{
	{"ClaimedOnce", anyLevel, claimedOnce},
}

// claimedOnce: a store is one deployment's at a time.
func claimedOnce(e *env) {
	e.open()
	first := e.claim("first")
	e.claimed("first")
	first()
	second := e.claim("second")
	first() // what it took is another's now
	e.claimed("second")
	second()
	e.claim("third")()
}

func (e *env) claim(application string) (release func()) {
	e.Helper()
	release, err := e.store.Claim(application)
	if err != nil {
		e.Fatalf("Claim: %v", err)
	}
	return release
}

// claimed checks that the store is an application's.
func (e *env) claimed(by string) {
	e.Helper()
	_, err := e.store.Claim("another")
	e.refused("Claim", err, storage.ErrInUse)
	if !strings.Contains(err.Error(), by) {
		e.Fatalf("Claim: got %v, want it to name %q", err, by)
	}
}
