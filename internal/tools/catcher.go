package main

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"
)

// leaveNoTrace sets the environment of a command that runs tests which may fail because of a fault.
// Rapid would keep the inputs of each failure in the package's testdata, and try them in all later
// runs. The directory of the command is set before.
func leaveNoTrace(cmd *exec.Cmd, more ...string) {
	cmd.Env = append(append(cmd.Environ(), "RAPID_NOFAILFILE=true"), more...)
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// hangs begins what caught a fault with which tests waited, or computed, until their time was over.
const hangs = "a test that hangs"

// runningTest is the first of those that were running, as a time-out names them: the one that hangs,
// where none runs beside it.
var runningTest = regexp.MustCompile(`(?m)^panic: test timed out.*\n\s*running tests:\n\s*(\S+)`)

// catcher says what caught a fault: the first test that failed in a run that ended with an error.
// An error is that the run could not be made.
func catcher(output string, failed error) (string, error) {
	exit, ok := errors.AsType[*exec.ExitError](failed)
	if !ok {
		return "", failed
	}
	if test := failedTest.FindStringSubmatch(output); test != nil {
		return test[1], nil
	}
	if test := runningTest.FindStringSubmatch(output); test != nil {
		return hangs + ": " + test[1], nil
	}
	if strings.Contains(output, "panic: test timed out") || !exit.Exited() {
		return hangs, nil
	}
	return "a panic", nil
}
