package bench

import (
	"strings"
	"testing"
	"time"
)

// TestVerdict: what a disk is goes by its synced writes, what limits by how busy it is.
func TestVerdict(t *testing.T) {
	for _, tt := range []struct {
		p50, p99 time.Duration
		disk     float64
		level    Level
		words    []string
	}{
		{2 * time.Microsecond, time.Millisecond, 0.1, NotADisk, []string{"no device is that fast", "What limits is the processors"}},
		{150 * time.Microsecond, time.Millisecond, 0.5, Good, []string{"as on a good SSD", "What limits is the disk and the processors: the log is written to for 50%"}},
		{150 * time.Microsecond, 12 * time.Millisecond, 0.9, Usable, []string{"as on a good SSD", "it stalls", "What limits is the disk: "}},
		{3 * time.Millisecond, 12 * time.Millisecond, 0.9, Usable, []string{"slow for an SSD"}},
		{12 * time.Millisecond, 900 * time.Millisecond, 0.9, Poor, []string{"as on a hard disk", "it stalls"}},
	} {
		r := Result{Sync: Times{Count: 9, P50: tt.p50, P99: tt.p99}, Appends: []Appends{{Callers: 1, Disk: 0.01}, {Callers: 256, PerSecond: 12345.6, Disk: tt.disk}}}
		v := r.Verdict()
		text := strings.Join(v.Words, "\n")
		for _, want := range append(tt.words, "With 256 callers it takes 12,345 events a second.") {
			if !strings.Contains(text, want) {
				t.Errorf("%v: got %s, want %s", tt.p50, text, want)
			}
		}
		if stalls := strings.Contains(text, "stalls"); v.Level != tt.level || stalls != (len(tt.words) > 1 && strings.Contains(strings.Join(tt.words, ""), "stalls")) {
			t.Errorf("%v: got %s, %s", tt.p50, v.Level, text)
		}
	}
}
