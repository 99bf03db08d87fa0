package linear

import (
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setting is a number from the environment, for longer runs.
func setting(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// unlessShort is n, and a fifth of it with -short.
func unlessShort(n uint64) uint64 {
	if testing.Short() {
		return n / 5
	}
	return n
}
