package operate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"

	"github.com/partita-go/partita/cmd/partita/internal/config"
)

// root is the repository's.
const root = "../../../../"

func readDeployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	check(t, err)
	return string(text)
}

// parses fails the test unless the program takes arguments as far as their flags.
func parses(t *testing.T, args []string) {
	t.Helper()
	c, rest, err := command().Find(args)
	check(t, err)
	if !c.Runnable() {
		t.Errorf("%q is no command", args)
	}
	if err := c.ParseFlags(rest); err != nil || c.Flags().NArg() > 0 {
		t.Errorf("%q: %v", args, err)
	}
}

// TestDeployedUnit: the unit starts a command that there is, with flags that there are, and systemd understands it.
func TestDeployedUnit(t *testing.T) {
	const installed = "/usr/local/bin/partita"
	unit := readDeployed(t, "deploy/partita.service")
	start := regexp.MustCompile(`(?m)^ExecStart=` + installed + ` (.*)$`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("it starts nothing")
	}
	parses(t, strings.Fields(start[1]))
	commands := regexp.MustCompile(`(?m)^#   partita (.*)$`).FindAllStringSubmatch(unit, -1)
	if len(commands) != 2 || !strings.HasPrefix(start[1], "serve --config /etc/partita/partita.toml ") {
		t.Errorf("got %s, which nobody has made: %q", start[1], commands)
	}
	for _, m := range commands {
		parses(t, strings.Fields(m[1]))
	}
	for _, line := range []string{"Type=notify", "WatchdogSec=30s", "StateDirectory=partita", "LogsDirectory=partita", "DynamicUser=yes", "ExecReload=/bin/kill -HUP $MAINPID"} {
		if !slices.Contains(strings.Split(unit, "\n"), line) {
			t.Errorf("there is no line %s", line)
		}
	}
	if rotate := readDeployed(t, "deploy/partita.logrotate"); !strings.Contains(rotate, "/var/log/partita/") || !strings.Contains(rotate, "partita.service") {
		t.Error("the unit and logrotate mean different files")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is missing: nobody has verified the unit")
	}
	program, err := filepath.Abs(os.Args[0])
	check(t, err)
	file := filepath.Join(t.TempDir(), "partita.service")
	check(t, os.WriteFile(file, []byte(strings.ReplaceAll(unit, installed, program)), 0o600))
	verify := exec.CommandContext(limit(t), analyze, "verify", "--man=no", file)
	if out, err := verify.CombinedOutput(); err != nil || strings.Contains(string(out), "partita.service:") {
		t.Errorf("%v: %s", err, out)
	}
}

// instruction is a line of a Dockerfile that runs something.
var instruction = regexp.MustCompile(`(?m)^(?:\s*CMD|CMD|ENTRYPOINT|HEALTHCHECK.* CMD) (\[.*\])$`)

// TestDeployedImage: what the image runs is a command that there is; it is built with the version of Go that is wanted;
// and what is copied and mounted is where it is looked for.
func TestDeployedImage(t *testing.T) {
	image := readDeployed(t, "deploy/Dockerfile")
	found := 0
	for _, m := range instruction.FindAllStringSubmatch(image, -1) {
		var args []string
		check(t, json.Unmarshal([]byte(m[1]), &args))
		if args[0] == "/usr/local/bin/partita" {
			args = args[1:]
		}
		if len(args) > 0 {
			parses(t, args)
			found++
		}
	}
	if found != 2 {
		t.Errorf("got %d commands, want the server and its health", found)
	}
	mod := readDeployed(t, "go.mod")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(mod)[1]
	for _, want := range []string{"FROM golang:" + version + " ", "CGO_ENABLED=0", "USER 65532:65532", "./cmd/partita"} {
		if !strings.Contains(image, want) {
			t.Errorf("there is no %q", want)
		}
	}
}

// TestDeployedCompose: compose.yaml runs the image, brings the secrets and the directories that it names, and its comments
// have commands that there are.
func TestDeployedCompose(t *testing.T) {
	text := readDeployed(t, "deploy/compose.yaml")
	var compose struct {
		Services map[string]struct {
			Build       struct{ Dockerfile string }
			Environment map[string]string
			Volumes     []string
			Secrets     []string
			Healthcheck struct{ Test []string }
		}
		Secrets map[string]struct{ File string }
	}
	document, err := yaml.Parser().Unmarshal([]byte(text))
	check(t, err)
	asJSON, err := json.Marshal(document)
	check(t, err)
	check(t, json.Unmarshal(asJSON, &compose))
	s := compose.Services["partita"]
	if s.Build.Dockerfile != "deploy/Dockerfile" || !slices.Equal(s.Volumes, []string{"store:/var/lib/partita", "./etc:/etc/partita:ro"}) || len(s.Healthcheck.Test) < 3 {
		t.Errorf("got %+v", s)
	}
	parses(t, s.Healthcheck.Test[2:])
	for _, secret := range regexp.MustCompile(`/run/secrets/(\w+)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(s.Secrets, secret[1]) || compose.Secrets[secret[1]].File == "" {
			t.Errorf("secret %s is wanted, which nobody brings", secret[1])
		}
	}
	// The server takes every variable for a setting, and these together for safe.
	l, err := config.NewSource("", func(name string) string { return s.Environment[name] }, nil).Load()
	check(t, err)
	if c := l.Config; c.DB != "/var/lib/partita/store" || c.Listen != ":7420" || c.TLSCert == "" || c.TLSKey == "" || c.TokenFile == "" || len(s.Environment) != 6 {
		t.Errorf("got %+v of %v", c, s.Environment)
	}
	all := regexp.MustCompile(`(?m)^#   docker .* partita ((?:init|serve) .*)$`).FindAllStringSubmatch(text, -1)
	if len(all) != 2 {
		t.Fatalf("got %q", all)
	}
	for _, m := range all {
		parses(t, strings.Fields(m[1]))
	}
}

// TestSecretsStayOut: the files that compose.yaml takes its secrets from come neither into the repository nor into an image.
func TestSecretsStayOut(t *testing.T) {
	files := regexp.MustCompile(`(?m)^    file: (\S+)$`).FindAllStringSubmatch(readDeployed(t, "deploy/compose.yaml"), -1)
	if len(files) < 3 {
		t.Errorf("got %d secrets: they were not found", len(files))
	}
	for _, ignores := range []string{".gitignore", ".dockerignore"} {
		lines := strings.Split(readDeployed(t, ignores), "\n")
		for _, f := range files {
			if !slices.ContainsFunc(lines, func(line string) bool {
				is, err := path.Match(strings.TrimPrefix(line, "/"), "deploy/"+f[1])
				return err == nil && is
			}) {
				t.Errorf("%s does not have deploy/%s", ignores, f[1])
			}
		}
	}
}

// TestReleases: what is released is there, and the types of each system are checked in CI: Linux on both processors, since
// tests run on the other one, and the others on one.
func TestReleases(t *testing.T) {
	release := readDeployed(t, ".goreleaser.yaml")
	for _, want := range []string{"goos: [linux, darwin, windows]", "goarch: [amd64, arm64]", "algorithm: sha256", "sboms:", "main: ./cmd/partita"} {
		if !strings.Contains(release, want) {
			t.Errorf("there is no %q", want)
		}
	}
	if want := "$(TOOLS) cross linux/arm64 darwin/arm64 windows/amd64\n"; !strings.Contains(readDeployed(t, "Makefile"), want) {
		t.Errorf("make cross-check does not have %s", want)
	}
	files := regexp.MustCompile(`(?m)^      - ([A-Za-z/*.]+)$`).FindAllStringSubmatch(release, -1)
	for _, f := range files {
		if found, err := filepath.Glob(root + f[1]); err != nil || len(found) == 0 {
			t.Errorf("%s: there is no such file", f[1])
		}
	}
	if len(files) < 8 {
		t.Errorf("got %d files: they were not found", len(files))
	}
}
