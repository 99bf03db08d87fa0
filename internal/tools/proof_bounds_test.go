package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestProofIsNotFed prints what runs would that have looked for next to nothing.
func TestProofIsNotFed(t *testing.T) {
	for _, tt := range []struct{ part, was, is, want string }{
		{"linear", "operations=20713", "operations=1", "got 1 operations"},
		{"linear", "unknown=1420", "unknown=1", "got 1 unknown outcomes"},
		{"fuzz", "inputs=345678", "inputs=10000", "got 10000 inputs"},
		{"fuzz", fmt.Sprintf("targets=%d", provedTargets), "targets=10", "got 10 targets, want"},
		{"fuzz", fmt.Sprintf("targets=%d", provedTargets), fmt.Sprintf("targets=%d", provedTargets+1), fmt.Sprintf("got %d targets, want %d", provedTargets+1, provedTargets)},
		{"crash", "planted=243 found=217 open=115 read=83 verify=19 harmless=26", "planted=243 found=1 open=1 read=0 verify=0 harmless=242", "got 1 found"},
		{"crash", "planted=243 found=217 open=115 read=83 verify=19 harmless=26", "planted=999 found=899 open=899 read=0 verify=0 harmless=100", "got 100 harmless, want 0 to 50"},
		{"crash", "planted=612 found=612 open=611 read=0 verify=1 harmless=0", "planted=612 found=611 open=610 read=0 verify=1 harmless=1", "got 1 harmless, want 0"},
		{"crash", "planted=612 found=612", "planted=612 found=600", "got 600 found, want as many as planted: 612"},
		{"crash", "losable=55", "losable=0", "got 65 images with something to lose, want at least 80"},
		{"crash", "cut-off=3", "cut-off=0", "got 0 images between the transactions of a flush, want at least 1"},
		{"crash", "cut-off=2", "cut-off=0", "got 0 flushes cut off between transactions, want at least 1"},
		{"crash", "refused=map[log.db:3 log.wal:4", "refused=map[log.db:3 log.wal:3", "got 3 told of log.wal, want as many as of log.wal: 4"},
		{"crash", "refused=map[log.db:3 ", "refused=map[", "no count of told of log.db"},
		{"crash", "power: of=recovery", "lost: of=recovery", "got 2 kinds of moments, want 3"},
		{"crash", "full: on=ext4 acked=6934", "full: on=ext4 acked=0", "acknowledged events checked, want at least"},
		{"sim", "54275 acknowledged", "1 acknowledged", "got 1 acknowledged"},
		{"sim", "201259 faults", "1 faults", "got 1 faults"},
		{"soak", "faults=537 hangs=14", "faults=1 hangs=1", "got 1 hangs, want at least"},
		{"mutants-listed", fmt.Sprintf("planted=%d caught=%[1]d", provedFaults), "planted=15 caught=15", "got 15 planted, want"},
	} {
		texts := maps.Clone(printed)
		texts[tt.part] = strings.Replace(texts[tt.part], tt.was, tt.is, 1)
		out, err := proved(t, texts, 0)
		wantError(t, err, "1 kinds do not hold")
		if !strings.Contains(out, tt.want) {
			t.Errorf("%s: %s: got\n%s\nwant %q", tt.part, tt.is, out, tt.want)
		}
	}
}

// TestProofOfSkippedTests skips a test that counts, and one that does not: nothing of it is ok.
func TestProofOfSkippedTests(t *testing.T) {
	texts := maps.Clone(printed)
	ext4 := regexp.MustCompile(`(?m)^full: on=ext4.*\n`)
	texts["crash"] = ext4.ReplaceAllString(texts["crash"], "") + "--- SKIP: TestFullFileSystem/ext4 (0.01s)\n--- SKIP: TestReadOnlyFileSystem (0.00s)\n"
	out, err := proved(t, texts, 0)
	wantError(t, err, "2 kinds do not hold")
	for _, want := range []string{"FAILED  full disk ", "FAILED  other tests      of crash (skipped: TestReadOnlyFileSystem)", "want all run, or -allow-skips", "ok      flips "} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	out, err = proved(t, texts, 0, "-allow-skips")
	if err != nil {
		t.Fatal(err, out)
	}
	for _, want := range []string{
		"skipped full disk        1 file systems, 5,279 acknowledged events checked, 201 refused, 0 lost (skipped: TestFullFileSystem/ext4)",
		"skipped other tests      of crash (skipped: TestReadOnlyFileSystem)", "proof: 7 parts hold, but for 2 kinds that were skipped",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	texts["crash"] = strings.Replace(texts["crash"], "acked=5279 refused-or-closed=201 lost=0", "acked=5279 refused-or-closed=201 lost=1", 1)
	out, err = proved(t, texts, 0, "-allow-skips")
	wantError(t, err, "1 kinds do not hold")
	if !strings.Contains(out, "FAILED  full disk ") {
		t.Errorf("what was not skipped lost an event: got\n%s", out)
	}
}

// TestProofWithoutStrace skips all tests of three kinds.
func TestProofWithoutStrace(t *testing.T) {
	texts := maps.Clone(printed)
	texts["crash"] = regexp.MustCompile(`(?m)^(power|faults|unreadable): .*\n`).ReplaceAllString(texts["crash"], "") +
		"--- SKIP: TestPowerLoss (0.01s)\n--- SKIP: TestPowerLossAgain (0.01s)\n--- SKIP: TestFailingCalls (0.00s)\n--- SKIP: TestUnreadableFiles (0.00s)\n"
	_, err := proved(t, texts, 0)
	wantError(t, err, "3 kinds do not hold")
	out, err := proved(t, texts, 0, "-allow-skips")
	if err != nil {
		t.Fatal(err, out)
	}
	for _, want := range []string{"skipped power loss       (skipped: TestPowerLoss, TestPowerLossAgain)", "skipped failing calls ", "skipped unreadable "} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
}

// TestProofPlantsOfEachList: the faults that the proof plants are there, and some of each list.
func TestProofPlantsOfEachList(t *testing.T) {
	root := filepath.Join("..", "..")
	lists, err := filepath.Glob(filepath.Join(root, "tests", "mutants", "*.txt"))
	if err != nil {
		t.Fatal(err)
	}
	selected := regexp.MustCompile(strings.ReplaceAll(provedMutants, "$$", "$"))
	all := 0
	for _, list := range lists {
		plants, err := readPlants(root, []string{list})
		if err != nil {
			t.Fatal(err)
		}
		plants = slices.DeleteFunc(plants, func(p plant) bool { return !selected.MatchString(p.name) })
		if len(plants) == 0 {
			t.Errorf("%s: got no fault that the proof plants, want one", list)
		}
		all += len(plants)
	}
	if all != provedFaults {
		t.Errorf("got %d faults of the proof's list, want %d", all, provedFaults)
	}
}

func TestProofCountsFuzzTargets(t *testing.T) {
	targets, err := fuzzTargets(t.Context(), filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(targets) != provedTargets {
		t.Errorf("got %d fuzz targets, want the %d of provedTargets: %v", len(targets), provedTargets, targets)
	}
}
