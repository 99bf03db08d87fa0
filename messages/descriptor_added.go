package messages

import (
	"fmt"
	"slices"
)

// Added returns in words what d, which extends old, has beside it: kinds, sequences, and rules that have changed.
func (d *Descriptor) Added(old *Descriptor) (all []string) {
	n := d.Over(old)
	for _, k := range n.Kinds {
		was, there := old.Kind(k.ID)
		if !there {
			all = append(all, k.in()+" is new")
			continue
		}
		for i := range k.Sequences {
			for _, change := range k.Sequences[i].added(was.sequence(k.Sequences[i].ID)) {
				all = append(all, k.in()+", "+change)
			}
		}
	}
	return all
}

// added returns what has changed of a sequence; nil was not there.
func (s *Sequence) added(was *Sequence) (all []string) {
	if was == nil {
		return []string{s.in() + " is new"}
	}
	changes := func(what string, is, was any) {
		all = append(all, fmt.Sprintf("%s: %s: %+v, was %+v", s.in(), what, is, was))
	}
	if s.Max() != was.Max() {
		changes("largest", s.Max(), was.Max())
	}
	if s.Restart.Keep != was.Restart.Keep {
		changes("keep", s.Restart.Keep, was.Restart.Keep)
	}
	if s.Restart.Ahead != was.Restart.Ahead {
		changes("ahead", s.Restart.Ahead, was.Restart.Ahead)
	}
	if !slices.Equal(s.Formats, was.Formats) {
		changes("formats", fmt.Sprintf("%q", s.Formats), fmt.Sprintf("%q", was.Formats))
	}
	return all
}
