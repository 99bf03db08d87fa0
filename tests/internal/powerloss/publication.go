package powerloss

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// Publication is the history of a directory that is made and filled under another name, and
// gets its own when it is whole.
type Publication struct {
	*History
	// final is its own name, renamed the call that gave it.
	final   string
	renamed *Call
	calls   []Call
}

// NewPublication makes the history of the files of a directory up to where it has got the name
// final. What was written to the descriptor journalFD are the lines.
func NewPublication(calls []Call, final string, journalFD int) (*Publication, error) {
	for i := range calls {
		c := &calls[i]
		if c.Name != "renameat" && c.Name != "renameat2" || c.Result < 0 || c.End == never {
			continue
		}
		from, err := c.path(1)
		if err != nil {
			return nil, err
		}
		to, err := c.path(3)
		if err != nil {
			return nil, err
		}
		if to == final {
			h, err := newHistorian(from, journalFD).tell(calls)
			return &Publication{History: h, final: final, renamed: c, calls: calls}, err
		}
	}
	return nil, fmt.Errorf("%w: nothing is renamed to %s", errTrace, final)
}

// Named is the first moment at which the directory may have its name.
func (p *Publication) Named() *Moment {
	m := p.Begin()
	m.Advance(p.renamed.Begin + 1)
	return m
}

// Unsafe says what a loss of power can take of the directory though it has its name: nil if
// nothing.
func (p *Publication) Unsafe() []string {
	var unsafe []string
	m := p.Named()
	for _, name := range slices.Sorted(maps.Keys(p.named)) {
		if n := len(m.losable(p.named[name])); n > 0 {
			unsafe = append(unsafe, fmt.Sprintf("%d writes of %s are not synced when it gets its name", n, name))
		}
	}
	if _, open := m.named(); len(open) > 0 {
		unsafe = append(unsafe, fmt.Sprintf("%d names in it are not synced when it gets its own, the first is %s", len(open), open[0].name))
	}
	if last := p.Places[len(p.Places)-1]; last > p.renamed.Begin {
		unsafe = append(unsafe, fmt.Sprintf("it is changed at place %d, and gets its name at %d", last, p.renamed.Begin))
	}
	return unsafe
}

// Losable says which names of the directory, and of those above it that were made for it, a loss of
// power can take at a place: nil if none.
func (p *Publication) Losable(place int) []string {
	var losable []string
	for i := range p.calls {
		c := &p.calls[i]
		at := 1
		switch {
		case c == p.renamed:
			at = 3
		case c.Name != "mkdirat" || c.Result < 0:
			continue
		}
		name, err := c.path(at)
		if err == nil && strings.HasPrefix(p.final+"/", name+"/") && !p.syncedBetween(filepath.Dir(name), c.End, place) {
			losable = append(losable, name)
		}
	}
	return losable
}

// syncedBetween reports whether a directory was synced behind one place and before another.
func (p *Publication) syncedBetween(dir string, from, to int) bool {
	for i := range p.calls {
		c := &p.calls[i]
		if !c.isSync() || c.Result < 0 || c.Begin < from || c.End >= to {
			continue
		}
		if _, path, err := c.descriptor(); err == nil && path == dir {
			return true
		}
	}
	return false
}
