package messages

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameBytes is the largest length of the names of an application, its kinds and their sequences, in bytes.
const MaxNameBytes = 255

// CheckNames returns an [ErrDescriptor] that names the first name which a store cannot begin with: one that is empty,
// too long or no printable text, or that another kind, or another sequence of the kind, has too; of a sequence also one
// of digits alone, which is taken for an id, and that of a built-in one. What old has already keeps its name; nil is for a
// new store.
func (d *Descriptor) CheckNames(old *Descriptor) error {
	if old == nil {
		if err := checkName(d.Application); err != nil {
			return fmt.Errorf("%w: application: %w", ErrDescriptor, err)
		}
		old = &Descriptor{}
	}
	kinds := make(map[string]int, len(d.Kinds))
	for _, k := range d.Kinds {
		kinds[k.Name]++
	}
	for _, k := range d.Kinds {
		was, there := old.Kind(k.ID)
		err := checkNew(there, k.Name, kinds)
		if err == nil {
			err = k.checkNames(was)
		}
		if err != nil {
			return fmt.Errorf("%w: kind %d: %w", ErrDescriptor, k.ID, err)
		}
	}
	return nil
}

func (k Kind) checkNames(was Kind) error {
	sequences := make(map[string]int, len(k.Sequences))
	for i := range k.Sequences {
		sequences[k.Sequences[i].Name]++
	}
	for i := range k.Sequences {
		s := &k.Sequences[i]
		there := was.sequence(s.ID) != nil
		err := checkNew(there, s.Name, sequences)
		if err == nil && !there {
			err = checkMeaning(s.Name)
		}
		if err != nil {
			return fmt.Errorf("sequence %d: %w", s.ID, err)
		}
	}
	return nil
}

// checkMeaning checks that the name of a sequence can mean nothing else: where one is asked for, it may be by its id.
func checkMeaning(name string) error {
	if strings.Trim(name, "0123456789") == "" {
		return fmt.Errorf("name: got %q, want one that is not of digits alone, which is an id", name)
	}
	if slices.ContainsFunc(Kind{}.All(), func(s Sequence) bool { return s.Name == name }) {
		return fmt.Errorf("name: got %q, which a built-in sequence has", name)
	}
	return nil
}

// checkNew checks the name of what was not there before, among all of its sort.
func checkNew(there bool, name string, all map[string]int) error {
	switch {
	case there:
		return nil
	case all[name] > 1 && name != "":
		return fmt.Errorf("name: got %q, which another one has", name)
	}
	return checkName(name)
}

func checkName(name string) error {
	switch {
	case name == "" || len(name) > MaxNameBytes:
		return fmt.Errorf("name: got %d bytes, want 1 to %d", len(name), MaxNameBytes)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("name: got %q, want printable text", name)
	}
	return nil
}
