package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
)

// wantsVoucher lets some take a number of the sequence that ends.
func (c *client) wantsVoucher() bool { return c.random.IntN(16) == 0 }

// usedUp reports whether an error says that a workspace has no voucher left, and counts that.
func (r *run) usedUp(ws messages.WSID, err error) bool {
	e, ok := errors.AsType[*messages.OverflowError](err)
	if !ok {
		return false
	}
	r.count(exhausted, 1)
	if got := [5]any{e.Workspace, e.Seq, e.Last, e.Largest, e.Wanted}; got != [5]any{ws, seqVoucher, messages.Number(vouchers), messages.Number(vouchers), 1} {
		r.troublef("workspace %d has no voucher left: got %v", ws, err)
	}
	return true
}

// useUp takes the vouchers that the busiest workspaces have left, over a store that works. Whoever wants another one is
// refused, and consumes nothing: neither of that sequence, nor of the others, nor an offset.
func (c *client) useUp(ctx context.Context, d *deployment) error {
	for ws := range messages.WSID(3) {
		for left := vouchers; ; left-- {
			before, err := d.store.Numbers(ctx, ws)
			if err != nil {
				return err
			}
			q := c.newRequest(ws, 1, true)
			each, err := q.send(ctx, d)
			if c.run.usedUp(ws, err) {
				after, err := d.store.Numbers(ctx, ws)
				if got, want := fmt.Sprint(after), fmt.Sprint(before); err != nil || got != want {
					return fmt.Errorf("workspace %d has no voucher left: got %v, want %v: %w", ws, got, want, err)
				}
				if err := d.tellsOfVouchers(ws); err != nil {
					return err
				}
				break
			}
			if err != nil || left == 0 {
				return fmt.Errorf("workspace %d: got %v in place of the last voucher but %d: %w", ws, each, left, err)
			}
			c.promised(q, each)
		}
	}
	return nil
}

// tellsOfVouchers returns an error unless the status of a workspace's partition says that the vouchers are nearly used, or
// says that of as many sequences as it can.
func (d *deployment) tellsOfVouchers(ws messages.WSID) error {
	sequencer, err := d.app.SequencerOf(ws)
	if err != nil {
		return err
	}
	all := sequencer.Status().NearlyUsed
	isVoucher := func(n messages.NearlyUsed) bool { return n.Workspace == ws && n.Seq == seqVoucher }
	if len(all) < messages.MaxNearlyUsed && !slices.ContainsFunc(all, isVoucher) {
		return fmt.Errorf("workspace %d has no voucher left: the status tells of %v", ws, all)
	}
	return nil
}
