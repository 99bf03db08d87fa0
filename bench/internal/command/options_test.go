package command

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/bench/internal/rows"
)

func TestTurnsStayWithinTheirGroup(t *testing.T) {
	o, err := parse([]string{"-repeat", "3"}, rows.ReadingGroups(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	turns, err := o.turns()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range rows.ReadingGroups() {
		for repeat := range 3 {
			for _, spec := range group {
				if len(turns) == 0 || turns[0].spec.Name != spec.Name || turns[0].repeat != repeat {
					t.Fatalf("got %v, want %s for the %d. time", turns, spec.Name, repeat+1)
				}
				turns = turns[1:]
			}
		}
	}
	if len(turns) != 0 {
		t.Errorf("got %v too many", turns)
	}
}

func TestEachTurnHasItsOwnProfile(t *testing.T) {
	o, err := parse([]string{"-repeat", "2", "-cpuprofile", "profiles"}, rows.Groups(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	turns, err := o.turns()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, turn := range turns {
		file := o.planOf(turn).Profile
		if seen[file] || filepath.Dir(file) != "profiles" {
			t.Errorf("%s: got %q", turn.spec.Name, file)
		}
		seen[file] = true
	}
	if o, err = parse(nil, rows.Groups(), io.Discard); err != nil || o.planOf(turns[0]).Profile != "" {
		t.Errorf("got a profile that nobody asked for, %v", err)
	}
}
