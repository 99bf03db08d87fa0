package storage

import (
	"context"
	"iter"
)

// parkedPage is how many parked events are read in one piece: not much memory, however long
// their reasons are.
const parkedPage = 16

// AllParked gives the events that a subscription has parked behind a place, which is zero for
// all, in order of partition and offset. It reads them in pieces while the loop goes on: what
// is parked or unparked meanwhile may be among them or not. It ends after the first error.
func AllParked(ctx context.Context, s Subscriptions, name string, after ParkedEvent) iter.Seq2[ParkedEvent, error] {
	return func(yield func(ParkedEvent, error) bool) {
		for {
			page, err := s.ParkedEvents(ctx, name, after, parkedPage)
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e
			}
			if err != nil {
				yield(ParkedEvent{}, err)
				return
			}
			if len(page) < parkedPage {
				return
			}
		}
	}
}
