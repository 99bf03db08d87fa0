package operate

import (
	"path/filepath"
	"strings"
	"testing"
)

// Progress goes to stderr, as text and as JSON: stdout is the result alone.
func TestProgressIsNoResult(t *testing.T) {
	dir := newStore(t)
	to := func() string { return filepath.Join(t.TempDir(), "to") }
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"verify", "--db", dir}, "pages of log.db: pages of state.db: log: projections: "},
		{[]string{"backup", "--db", dir, "--to", to()}, "copy state.db: copy log.db: pages of log.db: pages of state.db: log: projections: "},
		{[]string{"compact", "--db", dir, "--to", to(), "--json"}, "copy state.db: copy log.db: pages of log.db: pages of state.db: log: projections: "},
	} {
		o := run(t, tt.args...).has(t, exitFine)
		if progressLine.MatchString(o.stdout) {
			t.Errorf("%s: got progress in the result:\n%s", tt.args[0], o.stdout)
		}
		got := ""
		for line := range strings.Lines(o.progress) {
			if phase, _, _ := strings.Cut(line, ": "); !strings.HasSuffix(got, phase+": ") {
				got += phase + ": "
			}
		}
		if got != tt.want {
			t.Errorf("%s: got progress %q, want %q", tt.args[0], got, tt.want)
		}
	}
}
