package schema

import "github.com/partita-go/partita/messages"

// CheckTogether makes sure that an event that was appended together with others
// stands right before them in its batch, so that they become durable together.
func CheckTogether(events []messages.Event) error {
	for i := range events {
		first, rest := &events[i], events[i+1:]
		if first.Together == 0 {
			continue
		}
		if uint64(len(rest)) < uint64(first.Together) {
			return Invalid(first, "together: got %d events behind it in the batch, want %d", len(rest), first.Together)
		}
		for j := range rest[:first.Together] {
			if e := &rest[j]; e.Workspace != first.Workspace || !e.DedupID.IsZero() || e.Together != 0 {
				return Invalid(e, "together with offset %d: got workspace %d, id %v, together %d, want workspace %d and neither",
					first.PLogOffset, e.Workspace, e.DedupID, e.Together, first.Workspace)
			}
		}
	}
	return nil
}
