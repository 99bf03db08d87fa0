package operate

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// startPlain starts a server without a file of settings.
func startPlain(t *testing.T, args ...string) *configured {
	t.Helper()
	c := &configured{serving: &serving{t: t}, dir: newStore(t)}
	c.start(args...)
	return c
}

// TestHangupWithoutFiles: SIGHUP does not end a server that has nothing but flags: it goes back to those.
func TestHangupWithoutFiles(t *testing.T) {
	c := startPlain(t, "--log-level=error")
	other := filepath.Join(t.TempDir(), "other.toml")
	check(t, os.WriteFile(other, []byte("log_rate = 5\n"), 0o600))
	run(t, "config", "apply", other, "--url", c.URL).has(t, exitFine)
	rate := func() (shown string) {
		for _, s := range c.live().Settings {
			if s.Key == "log_rate" {
				shown = fmt.Sprint(s.Value)
			}
		}
		return shown
	}
	if got := rate(); got != "5" {
		t.Fatalf("got %s", got)
	}
	for range 2 {
		before := *c.live().Changed
		check(t, c.process.Process.Signal(syscall.SIGHUP))
		awaitThat(t, "it does not heed SIGHUP", func() bool { return c.live().Changed.After(before) })
	}
	if got := rate(); got != "1000" {
		t.Errorf("got %s", got)
	}
	check(t, c.process.Process.Signal(syscall.SIGTERM))
	check(t, c.process.Wait())
}

// TestDeployedUnitReloads: what the unit starts takes another configuration and another token at SIGHUP, which is what the
// unit sends it, and goes on.
func TestDeployedUnitReloads(t *testing.T) {
	unit := readDeployed(t, "deploy/partita.service")
	args := strings.Fields(regexp.MustCompile(`(?m)^ExecStart=\S+ serve --config \S+ (.*)$`).FindStringSubmatch(unit)[1])
	credentials := t.TempDir()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "%d", credentials)
	}
	file := filepath.Join(credentials, "token")
	check(t, os.WriteFile(file, []byte(secret), 0o600))
	configuration := filepath.Join(credentials, "partita.toml")
	check(t, os.WriteFile(configuration, []byte("log_rate = 7\n"), 0o600))
	c := startPlain(t, append([]string{"--config", configuration}, args...)...)
	hasRate := func(token, rate string) {
		t.Setenv(tokenVariable, token)
		if shown := run(t, "config", "show", "--url", c.URL).has(t, exitFine).stdout; !regexp.MustCompile(`log_rate +` + rate + ` `).MatchString(shown) {
			t.Errorf("got %s, want a rate of %s", shown, rate)
		}
	}
	ask := func(token string) int { return askServer(t, c.URL+"/v1/log", "Bearer "+token) }
	if got := ask(secret); got != http.StatusOK {
		t.Fatalf("got %d", got)
	}
	hasRate(secret, "7")
	check(t, os.WriteFile(configuration, []byte("log_rate = 8\n"), 0o600))
	check(t, os.WriteFile(file, []byte(secret+"-anew"), 0o600))
	check(t, c.process.Process.Signal(syscall.SIGHUP))
	awaitThat(t, "the token stays as it is", func() bool { return ask(secret+"-anew") == http.StatusOK })
	if got := ask(secret); got != http.StatusUnauthorized {
		t.Errorf("the old token: got %d", got)
	}
	hasRate(secret+"-anew", "8")
	check(t, c.process.Process.Signal(syscall.SIGTERM))
	check(t, c.process.Wait())
}
