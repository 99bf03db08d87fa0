package replogtest

import (
	"testing"

	"github.com/partita-go/partita/storage/replog"
)

// Cluster is the log of three nodes or more, as the suite drives it. None of them runs at first.
type Cluster interface {
	// Nodes are the names of all nodes.
	Nodes() []replog.NodeID
	// Log returns a node's side of the log, to be started. What the node had before is closed; its disk is as it was.
	Log(t testing.TB, id replog.NodeID) replog.Log
	// Elect sees to it that a node leads soon, which is connected, as a majority is. It need not wait for that.
	Elect(t testing.TB, id replog.NodeID)
	// Cut parts a node from all others in both directions, Heal connects it again.
	Cut(t testing.TB, id replog.NodeID)
	Heal(t testing.TB, id replog.NodeID)
}

// Doubter is a [Cluster] that can lose an answer by command.
type Doubter interface {
	// Doubt lets the next Append of a node that leads end with ErrOutcomeUnknown. The entry is there, or is lost.
	Doubt(t testing.TB, id replog.NodeID, there bool)
}

// Run checks an implementation. Each test has a cluster of its own, which open makes; what is left of it t cleans up.
func Run(t *testing.T, open func(t testing.TB) Cluster) {
	for _, test := range []struct {
		name string
		do   func(*rig)
	}{
		{"order", testOrder},
		{"one of two wins", testOneWins},
		{"another head", testOtherHead},
		{"sizes", testSizes},
		{"ended context", testEndedContext},
		{"unknown", testUnknown},
		{"who does not lead", testNotOwner},
		{"cut off", testCutOff},
		{"begins when all is applied", testBegin},
		{"transfer", testTransfer},
		{"restart", testRestart},
		{"ahead", testAhead},
		{"trim", testTrim},
		{"closed", testClosed},
		{"stopped", testStopped},
		{"random", testRandom},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, open(t))
			test.do(r)
			r.check()
		})
	}
}
