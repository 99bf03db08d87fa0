package main

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPlantsStand: each place that a listed fault changes is still there.
func TestPlantsStand(t *testing.T) {
	root := filepath.Join("..", "..")
	lists, err := filepath.Glob(filepath.Join(root, "tests", "mutants", "*.txt"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("got lists %v, error %v", lists, err)
	}
	plants, err := readPlants(root, lists)
	if err != nil {
		t.Fatal(err)
	}
	if len(plants) < 80 {
		t.Errorf("got %d faults, want at least 80", len(plants))
	}
}

// TestExcusesStand: each change that is excused can still be made.
func TestExcusesStand(t *testing.T) {
	root := filepath.Join("..", "..")
	all, err := readExcuses(root, filepath.Join(root, "tests", "mutants", "equivalent.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 80 {
		t.Errorf("got %d excuses, want at least 80", len(all))
	}
}

// TestMutatedStand: each pattern of the files that are changed still matches one.
func TestMutatedStand(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "make", "-n", "mutants-small")
	cmd.Dir = filepath.Join("..", "..")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, output)
	}
}
