package powerloss

import (
	"slices"
)

// past is the place of what happened before a history.
const past = -1

// Next makes the history of a process that went on with what the one of h has left. What
// that one has not synced may still be lost, until a sync of the file vouches for it; what a failed
// sync was about may be lost for ever, though whoever reads the file sees it.
func (h *History) Next(calls []Call) (*History, error) {
	b := newHistorian(h.dir, h.journalFD)
	b.follow(h)
	return b.tell(calls)
}

// follow begins with the end of another history.
func (b *historian) follow(h *History) {
	end := h.Begin()
	end.Advance(never)
	left := make(map[*node]*node, len(h.nodes))
	for _, n := range h.nodes {
		left[n] = end.files[n].left(n)
		b.nodes = append(b.nodes, left[n])
	}
	names, open := end.named()
	b.names = slices.Clone(open)
	for name, n := range names {
		b.base[name] = left[n]
	}
	for i := range b.names {
		ch := &b.names[i]
		*ch = change{begin: past, end: past, durable: never, name: ch.name, node: left[ch.node]}
	}
	for name, n := range h.named {
		b.named[name] = left[n]
	}
}

// left is a file at the end of its process: what may still be lost stays so.
func (f *cutFile) left(n *node) *node {
	left := &node{base: f.durable, size: n.size}
	for _, i := range f.open {
		was := &n.changes[i]
		for _, ch := range f.parts(n, i) {
			// Whether a call that never returned has done anything, nobody knows.
			ch.begin, ch.end, ch.durable, ch.doomed = past, past, never, was.doomed || was.end == never
			left.changes, left.cut = append(left.changes, ch), ch.cut
		}
	}
	return left
}
