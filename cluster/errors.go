package cluster

import (
	"errors"
	"fmt"

	"github.com/partita-go/partita/storage/replog"
)

// ErrOptions is returned when an option of a node is wrong. The error names it.
//
// From: Start of package cluster.
// Do: correct the option.
var ErrOptions = errors.New("wrong option of a node")

// ErrShards is returned where there must be one shard, and there are several.
//
// From: App, Transfer, Add and Remove of a Node.
// Do: ask the shard that is meant: Node.AppOf, Node.ShardOf, Node.Shards.
var ErrShards = errors.New("the application has several shards")

// errReplaced is why a request to a node is given up.
var errReplaced = errors.New("the node that was asked does not lead any more")

// OwnerError is replog.ErrNotOwner, and says who leads as far as this node knows.
//
// From: Node.App, Node.Transfer.
// Do: ask the node that it names; "" is none, as long as one is being elected.
type OwnerError struct{ Leader replog.NodeID }

func (e *OwnerError) Error() string {
	if e.Leader == "" {
		return fmt.Sprintf("%v: nobody leads now", replog.ErrNotOwner)
	}
	return fmt.Sprintf("%v: node %s leads", replog.ErrNotOwner, e.Leader)
}

// Is makes errors.Is(err, replog.ErrNotOwner) hold.
func (e *OwnerError) Is(target error) bool { return target == replog.ErrNotOwner }

// errSeeding is what a node answers that seeds another one already.
var errSeeding = errors.New("this node seeds another one: one at a time")

// errBrokenOff is why there is no answer, though it had begun.
var errBrokenOff = errors.New("the answer of the other node has broken off")

// errAnswer is that another node has answered what no node of this version does.
var errAnswer = errors.New("the answer of the other node is none")
