package actors

import "time"

// Queued returns how many requests are in the lane of a partition, or wait for
// room in it.
func (p *Partition) Queued() int { return p.mailbox.Queued() }

// Lapsed reports whether the transaction has seen the end of its context.
func (t *Transaction) Lapsed() bool { return t.lapsed.Load() }

// StopLimit is how long Stop waits from now on.
func (p *Partition) StopLimit() time.Duration { return p.stopLimit() }
