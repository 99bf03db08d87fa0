package storagetest

import (
	"maps"
	"slices"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

// ledger holds the last numbers given out, per workspace.
type ledger map[messages.WSID]*account

// account is what is known of one workspace.
type account struct {
	kind messages.Kind
	last map[messages.SeqID]messages.Number
}

func newAccount(kind messages.Kind) *account {
	return &account{kind: kind, last: make(map[messages.SeqID]messages.Number)}
}

func (a *account) clone() *account {
	return &account{kind: a.kind, last: maps.Clone(a.last)}
}

// sequence returns the definition of one of the kind's sequences.
func (a *account) sequence(id messages.SeqID) (messages.Sequence, bool) {
	all := a.kind.All()
	i := slices.IndexFunc(all, func(s messages.Sequence) bool { return s.ID == id })
	if i < 0 {
		return messages.Sequence{}, false
	}
	return all[i], true
}

// raise merges a number by maximum; one below the initial value is ignored.
func (a *account) raise(id messages.SeqID, n messages.Number) {
	if s, ok := a.sequence(id); ok && n >= s.Initial {
		a.last[id] = max(a.last[id], n)
	}
}

// next gives out a number.
func (a *account) next(id messages.SeqID) messages.Number {
	s, ok := a.sequence(id)
	if !ok {
		// A test of unknown sequences wants some number.
		return 1
	}
	a.last[id] = max(a.last[id]+1, s.Initial)
	return a.last[id]
}

// merge takes over what an event says.
func (l ledger) merge(d *messages.Descriptor, n messages.Numbering) {
	a := l[n.Workspace]
	if a == nil {
		kind, _ := d.Kind(n.WorkspaceKind)
		a = newAccount(kind)
		l[n.Workspace] = a
	}
	a.raise(messages.SeqWLogOffset, messages.Number(n.WLogOffset))
	for _, s := range n.Numbers {
		a.raise(s.Seq, s.Number)
	}
}

// numbers returns the account as a store lists it.
func (l ledger) numbers(ws messages.WSID) storage.WorkspaceNumbers {
	out := storage.WorkspaceNumbers{Workspace: ws}
	a := l[ws]
	if a == nil {
		return out
	}
	out.Kind = a.kind.ID
	for _, seq := range slices.Sorted(maps.Keys(a.last)) {
		out.Numbers = append(out.Numbers, messages.SequenceNumber{Seq: seq, Number: a.last[seq]})
	}
	return out
}

// changesSince returns what l has and before has not, as a Flush lists it.
func (l ledger) changesSince(before ledger) []storage.WorkspaceNumbers {
	var changes []storage.WorkspaceNumbers
	for _, ws := range slices.Sorted(maps.Keys(l)) {
		now, was := l.numbers(ws), before.numbers(ws)
		if was.Kind != 0 {
			now.Kind = 0
		}
		now.Numbers = slices.DeleteFunc(now.Numbers, func(n messages.SequenceNumber) bool { return slices.Contains(was.Numbers, n) })
		changes = append(changes, now)
	}
	return changes
}
