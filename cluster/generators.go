package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/ids"
)

var _ ids.GeneratorCounter = (*Node)(nil)

// generatorPath is where the owner of the first shard numbers generators of other nodes.
const generatorPath = clusterPath + "/generator"

// generator is what a node asks for, with the launch alone, and what it is told.
type generator struct {
	Launch uint32 `json:"launch"`
	Number uint32 `json:"number"`
}

// NextGenerator takes the number of a generator of decimal ids, from any node: here if this node owns the first shard, which
// numbers the generators of the application, else by the owner. No generator of any node has the number of another one: give
// the node to [ids.NewDecimalGenerator]. It goes on to the next owner, as Append does, until ctx ends: give it a deadline. A
// number of which nobody knows whether it was taken is nobody's, and another one is taken.
//
// The errors are those of NextGenerator of a bolt.Store, and [ids.ErrLaunch] above [ids.MaxLaunch]. When ctx ends while no
// node leads, that is a [*messages.BusyError] with BusyNoQuorum.
func (n *Node) NextGenerator(ctx context.Context, launch uint32) (number uint32, err error) {
	if err := mayHave(launch); err != nil {
		return 0, err
	}
	first := n.shards[0]
	p := &pursuit{shard: first, repeatable: true, try: func(ctx context.Context, o owner) (err error) {
		if o.here != nil {
			number, err = first.part().store.NextGenerator(ctx, launch)
			return err
		}
		body, err := json.Marshal(generator{Launch: launch})
		if err != nil {
			return err
		}
		var told generator
		err = first.exchange(ctx, http.MethodPost, o.node, generatorPath, body, &told)
		if err == nil && (told.Number == 0 || told.Launch != launch) {
			err = &lostError{true, fmt.Errorf("%w: node %s: a generator %+v", errAnswer, o.node, told)}
		}
		number = told.Number
		return err
	}}
	if err := p.run(ctx); err != nil {
		return 0, err
	}
	return number, nil
}

// mayHave returns [ids.ErrLaunch] if no id can be of a launch.
func mayHave(launch uint32) error {
	if launch > ids.MaxLaunch {
		return ids.ValidateLaunch(launch)
	}
	return nil
}

// answerGenerator numbers a generator of another node.
func (s *Shard) answerGenerator(w http.ResponseWriter, r *http.Request) {
	var g generator
	body, err := s.part().api.ReadBody(w, r)
	if err == nil && (json.Unmarshal(body, &g) != nil || mayHave(g.Launch) != nil) {
		err = httpapi.Malformed("launch", fmt.Sprintf("got %.100q", body))
	}
	if err == nil {
		g.Number, err = s.part().store.NextGenerator(r.Context(), g.Launch)
	}
	if err != nil {
		httpapi.Refuse(w, r, err)
		return
	}
	answer(w, g)
}
