package bolt_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// TestFound: a store knows what it was before it was extended, and that it was made.
func TestFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	one := messages.Descriptor{Application: "test", Partitions: 1, Kinds: []messages.Kind{{ID: 1, Name: "shop"}}}
	two := one
	two.Kinds = append(slices.Clone(one.Kinds), messages.Kind{ID: 2, Name: "depot"})
	for _, step := range []struct {
		d    messages.Descriptor
		made bool
		want []string
	}{{one, true, nil}, {two, false, []string{`kind 2 "depot" is new`}}, {two, false, nil}} {
		s, err := bolt.Open(t.Context(), dir, step.d, bolt.Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		found := s.Found()
		if made := found == nil; made != step.made {
			t.Errorf("got %v", found)
		}
		if is := s.Descriptor(); found != nil && !slices.Equal(is.Added(found), step.want) {
			t.Errorf("got %q, want %q", is.Added(found), step.want)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
