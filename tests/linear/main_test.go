package linear

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setting is a number from the environment, for longer runs. Without one, -short makes a fifth of it.
func setting(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(name)
	switch {
	case !ok && testing.Short():
		return max(1, otherwise/5)
	case !ok:
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
