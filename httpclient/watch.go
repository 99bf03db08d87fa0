package httpclient

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/partition"
)

// Actors returns the status of each actor, as [partition.App] does, with what the server tells of it.
func (c *Client) Actors(ctx context.Context) ([]partition.ActorStatus, error) {
	var answer httpapi.Statuses
	if err := c.ask(ctx, c.statuses(), &answer); err != nil {
		return nil, err
	}
	all := make([]partition.ActorStatus, len(answer.Actors))
	for i := range answer.Actors {
		var err error
		if all[i], err = answer.Actors[i].Read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Watch yields the status of each actor, and then each one that has changed, until ctx ends, over as many connections as it
// needs: behind each new one all statuses come once more. Unlike there it does not end with the application, which a server
// may serve again.
func (c *Client) Watch(ctx context.Context) iter.Seq2[partition.ActorStatus, error] {
	return followed(ctx, follower[partition.ActorStatus]{client: c, query: c.statuses(), moved: ignored, parse: parseActorStatus})
}

func (c *Client) statuses() *query { return c.get("v1", "status") }

func parseActorStatus(data []byte) (partition.ActorStatus, error) {
	var j httpapi.ActorStatus
	if err := json.Unmarshal(data, &j); err != nil {
		return partition.ActorStatus{}, err
	}
	return j.Read()
}
