package spans

import "github.com/partita-go/partita/partition"

// Open returns how many requests, transactions and pieces of work the observer of an actor remembers.
func Open(o partition.Observer) int {
	a, _ := o.(*actor)
	if a == nil {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	n := len(a.requests) + len(a.waiting) + len(a.appends) + len(a.transactions) + len(a.works)
	a.spans.handled.Range(func(any, any) bool { n++; return true })
	return n
}
