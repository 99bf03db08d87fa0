package tests

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the tests, or is a child process that they kill or record.
func TestMain(m *testing.M) {
	if config := os.Getenv(childEnv); config != "" {
		os.Exit(runChild(config))
	}
	if config := os.Getenv(copyChildEnv); config != "" {
		os.Exit(runCopyChild(config))
	}
	if dir := os.Getenv(loadChildEnv); dir != "" {
		fmt.Fprintln(os.Stderr, runLoadChild(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(idsChildEnv); dir != "" {
		fmt.Fprintln(os.Stderr, runIDsChild(dir, os.Stdout))
		os.Exit(1)
	}
	if config := os.Getenv(rulesChildEnv); config != "" {
		fmt.Fprintln(os.Stderr, runRulesChild(config, os.Stdout))
		os.Exit(1)
	}
	if config := os.Getenv(replayChildEnv); config != "" {
		if err := runReplayChild(config, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(fullLoadEnv); dir != "" {
		if err := runFullLoadChild(dir, os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeBenchStores()
		os.Exit(code)
	}))
}
