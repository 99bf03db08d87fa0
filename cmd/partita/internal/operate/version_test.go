package operate

import (
	"runtime"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	for _, flag := range []string{"--version", "-v"} {
		if o := run(t, flag).has(t, exitFine); !strings.HasPrefix(o.stdout, "partita version ") || !strings.HasSuffix(o.stdout, ", "+runtime.Version()+"\n") || o.stderr != "" {
			t.Errorf("%s: got stdout %q, stderr %q", flag, o.stdout, o.stderr)
		}
	}
}
