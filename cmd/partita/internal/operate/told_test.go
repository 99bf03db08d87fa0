package operate

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// fullWriter has no room.
type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

// A copy whose result cannot be written was made nevertheless, and the error says so.
func TestCopyThatCannotBeTold(t *testing.T) {
	dir := newStore(t)
	for _, args := range [][]string{{"backup", "--db"}, {"restore", "--from"}, {"compact", "--json", "--db"}} {
		to := filepath.Join(t.TempDir(), "to")
		var stderr strings.Builder
		status := Run(limit(t), append(args, dir, "--to", to), strings.NewReader(""), fullWriter{}, &stderr)
		o := outcome{status: status, stderr: progressLine.ReplaceAllString(stderr.String(), "")}
		o.fails(t, exitBlind, args[0]+" of "+dir+": the copy was made, in "+to+", but that could not be told: full")
		run(t, "verify", "--db", to).has(t, exitFine)
	}
}
