package cluster

import (
	"context"
	"fmt"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// Append is the method of that name of [partition.Sequencer], for the workspace's partition, from any node: here if this node
// owns it, else by the owner. What was refused since the owner has changed goes on to the new one, and so does what nobody
// knows the outcome of, if it has a deduplication id: the answer is the first one's then. Without one that is
// ErrOutcomeUnknown of package messages. It goes on until ctx ends: give it a deadline. When that has passed while no node
// leads, the error is a [*messages.BusyError] with BusyNoQuorum, and nothing was written.
//
// An error of another node tells by errors.Is and errors.As what it is, as [httpapi.ProblemError] has it. With
// AppendTo.Wait it tries again while the request lane there is full, until ctx ends: those who wait at the owner come first.
func (n *Node) Append(ctx context.Context, to partition.AppendTo, draft partition.Draft) (*partition.Appended, error) {
	var done *partition.Appended
	here := func(ctx context.Context, s *partition.Sequencer) (err error) {
		done, err = s.Append(ctx, to, draft)
		return err
	}
	there := func(ctx context.Context, o owner) error {
		body, err := httpapi.AppendBody(&to, &draft)
		if err != nil {
			return unwritable(err)
		}
		var answer httpapi.Appended
		if err := n.shardOf(to.Workspace).post(ctx, o.node, &to, body, &answer); err != nil {
			return err
		}
		one, err := answer.Read()
		if err != nil {
			return &lostError{true, err}
		}
		done = &one
		return nil
	}
	err := n.append(ctx, &to, here, there)
	return done, err
}

// AppendAll is the method of that name of [partition.Sequencer], as Append is.
func (n *Node) AppendAll(ctx context.Context, to partition.AppendTo, drafts []partition.Draft) ([]partition.Appended, error) {
	if len(drafts) == 0 {
		return nil, fmt.Errorf("%w: got none, want at least one", messages.ErrDraft)
	}
	var all []partition.Appended
	here := func(ctx context.Context, s *partition.Sequencer) (err error) {
		all, err = s.AppendAll(ctx, to, drafts)
		return err
	}
	there := func(ctx context.Context, o owner) error {
		body, err := httpapi.AppendAllBody(&to, drafts)
		if err != nil {
			return unwritable(err)
		}
		var answer httpapi.AppendedAll
		if err := n.shardOf(to.Workspace).post(ctx, o.node, &to, body, &answer); err != nil {
			return err
		}
		all = make([]partition.Appended, len(answer.Results))
		for i := range answer.Results {
			if all[i], err = answer.Results[i].Read(); err != nil {
				return &lostError{true, err}
			}
		}
		return nil
	}
	err := n.append(ctx, &to, here, there)
	return all, err
}

func unwritable(err error) error { return fmt.Errorf("%w: %w", messages.ErrDraft, err) }

func (n *Node) append(
	ctx context.Context, to *partition.AppendTo,
	here func(context.Context, *partition.Sequencer) error, there func(context.Context, owner) error,
) error {
	p := &pursuit{shard: n.shardOf(to.Workspace), writes: true, repeatable: !to.DedupID.IsZero(), waits: to.Wait, try: func(ctx context.Context, o owner) error {
		if o.here == nil {
			return there(ctx, o)
		}
		s, err := o.here.app.SequencerOf(to.Workspace)
		if err != nil {
			return err
		}
		return here(ctx, s)
	}}
	return p.run(ctx)
}
