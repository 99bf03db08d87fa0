package operate

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestCompletion: shells get a script that names the program, and what it asks for is answered.
func TestCompletion(t *testing.T) {
	for shell, want := range map[string]string{"bash": "__start_partita", "zsh": "#compdef partita", "fish": "complete -c partita"} {
		script := run(t, "completion", shell).has(t, exitFine).stdout
		if !strings.Contains(script, want) {
			t.Errorf("%s: there is no %s", shell, want)
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			continue // nobody has read it
		}
		read := exec.CommandContext(limit(t), path, "-n")
		read.Stdin = strings.NewReader(script)
		if out, err := read.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	for asked, want := range map[string]string{"ver": "verify\t", "subscriptions re": "resume\t", "serve --desc": "--descriptor\t", "log --db x --work": "--workspace\t"} {
		if got := run(t, append([]string{"__complete"}, strings.Fields(asked)...)...).has(t, exitFine).stdout; !strings.Contains(got, want) {
			t.Errorf("%s: got %s", asked, got)
		}
	}
}

// TestMan: there is a page for each command, which man understands.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	run(t, "man", "--to", dir).has(t, exitFine)
	found := 0
	for _, c := range commandsOf(command()) {
		found++
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(c.CommandPath(), " ", "-")+".1"))
		check(t, err)
		for _, want := range []string{".TH ", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH OPTIONS\n", ".SH EXIT STATUS\nExit status: 0 fine"} {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s: there is no %q", c.CommandPath(), want)
			}
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) < found || found < 30 {
		t.Errorf("got %d pages of %d commands, %v", len(names), found, err)
	}
	serve, err := os.ReadFile(filepath.Join(dir, "partita-serve.1"))
	check(t, err)
	if want := "\\fB\\-\\-log\\-level\\fR \\fILEVEL\\fR\n"; !strings.Contains(string(serve), want) {
		t.Errorf("there is no %s in %s", want, serve)
	}
	run(t, "man", "--to", filepath.Join(dir, "none")).fails(t, exitBlind, "no such file")
	man, err := exec.LookPath("man")
	if err != nil {
		t.Skip("man is missing: nobody has read the pages")
	}
	read := exec.CommandContext(limit(t), man, "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", filepath.Join(dir, "partita-serve.1"))
	if out, err := read.CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
		t.Errorf("%v: %.2000s", err, out)
	}
}

// TestVersionCommand: the version has the formats of all files, in words and as JSON.
func TestVersionCommand(t *testing.T) {
	text := run(t, "version").has(t, exitFine).stdout
	if !strings.Contains(text, "partita ") || !strings.Contains(text, "formats: log.db 5, log.wal 1, state.db 6, subscriptions.db 2, ids.db 1, export 1") {
		t.Errorf("got %s", text)
	}
	told := run(t, "version", "--json").has(t, exitFine).json(t)
	formats, _ := told["formats"].([]any)
	if told["command"] != "version" || len(formats) != 6 || told["system"] == "" || told["go"] == "" {
		t.Errorf("got %v", told)
	}
}

// TestNoColours: nothing is coloured, with NO_COLOR or without, and nothing is erased where a line cannot be.
func TestNoColours(t *testing.T) {
	dir := newStore(t)
	for _, value := range []string{"", "1"} {
		t.Setenv("NO_COLOR", value)
		for _, args := range []string{"verify --db " + dir, "inspect --db " + dir, "help", "version"} {
			o := run(t, strings.Fields(args)...).has(t, exitFine)
			if strings.Contains(o.stdout+o.stderr+o.progress, "\x1b") {
				t.Errorf("%s: got %q", args, o.stdout+o.stderr)
			}
		}
	}
}

// TestReadmeHasEachCommand: the list of commands of README is whole.
func TestReadmeHasEachCommand(t *testing.T) {
	readme := readDeployed(t, "README.md")
	c := command()
	c.InitDefaultCompletionCmd()
	for _, below := range c.Commands() {
		if !regexp.MustCompile(`(?m)^partita ` + below.Name() + ` `).MatchString(readme) {
			t.Errorf("README does not have partita %s", below.Name())
		}
	}
}

// TestHelpHasTheWidthOfItsPlace: no line of the help is longer than COLUMNS, if its words are not.
func TestHelpHasTheWidthOfItsPlace(t *testing.T) {
	for _, columns := range []int{50, 80, 100} {
		t.Setenv("COLUMNS", strconv.Itoa(columns))
		longest := 0
		for _, c := range commandsOf(command()) {
			text := run(t, append(strings.Fields(c.CommandPath())[1:], "--help")...).has(t, exitFine).stdout
			for line := range strings.Lines(text) {
				if length := len(strings.TrimSuffix(line, "\n")); length > columns && strings.Contains(strings.TrimSpace(line), " ") {
					t.Errorf("%d columns, %s: got %q", columns, c.CommandPath(), line)
				} else {
					longest = max(longest, length)
				}
			}
		}
		if longest < columns-5 {
			t.Errorf("got %d columns of %d", longest, columns)
		}
	}
}

// TestUnknownWorkspace: every command that is asked about a workspace without events says so, and writes nothing.
func TestUnknownWorkspace(t *testing.T) {
	dir := newStore(t)
	file := filepath.Join(t.TempDir(), "events")
	for _, args := range []string{"log", "log --json", "log --from 7", "numbers", "export --to " + file, "export --workspace 4 --to " + file} {
		words := append(strings.Fields(args), "--db", dir, "--workspace", "7777")
		o := run(t, words...)
		o.fails(t, exitBlind, "workspace 7777 has no event")
		if o.stdout != "" {
			t.Errorf("%s: got %s", args, o.stdout)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was written")
	}
	if o := run(t, "log", "--db", dir, "--workspace", "4", "--from", "9").has(t, exitFine); o.stdout != "" {
		t.Errorf("got %s", o.stdout)
	}
}

// TestWithinStore: nothing is made within a store, be it by its name or through a link.
func TestWithinStore(t *testing.T) {
	dir, other := newStore(t), newStore(t)
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(dir, link))
	before := contents(t, dir)
	for _, args := range []string{
		"backup --db DIR --to DIR/copy", "backup --db OTHER --to DIR/a/b/copy", "backup --db DIR --to LINK/copy", "compact --db DIR --to DIR/copy",
		"restore --from DIR --to DIR/copy", "export --db DIR --to DIR/events", "export --db DIR --to - --subscriptions DIR/subs", "import --from DIR/log.db --to DIR/new",
	} {
		words := strings.Fields(strings.NewReplacer("DIR", dir, "OTHER", other, "LINK", link).Replace(args))
		run(t, words...).fails(t, exitBlind, "is within the store "+dir, "want a place outside of it")
	}
	untouched(t, dir, before)
	for _, beside := range []string{"copy", "new/copy"} {
		run(t, "backup", "--db", dir, "--to", filepath.Join(filepath.Dir(dir), beside)).has(t, exitFine)
	}
}

// TestVariables: a store, a server and a token can be in the environment. What is given goes before it.
func TestVariables(t *testing.T) {
	dir, other := newStore(t), t.TempDir()
	t.Setenv("PARTITA_DB", dir)
	run(t, "verify").has(t, exitFine)
	run(t, "subscriptions", "list").has(t, exitFine)
	run(t, "log", "--workspace", "4").has(t, exitFine)
	run(t, "verify", "--db", other).fails(t, exitBlind, other)
	t.Setenv("PARTITA_TOKEN_FILE", filepath.Join(other, "none")) // it is for servers alone
	run(t, "subscriptions", "list").has(t, exitFine)
	t.Setenv("PARTITA_URL", "http://localhost:1")
	run(t, "health").fails(t, exitBlind, "localhost:1")
	run(t, "subscriptions", "list").fails(t, exitBlind, "want either --db or --url")
	run(t, "subscriptions", "list", "--db", dir).has(t, exitFine)
	run(t, "subscriptions", "list", "--url", "http://localhost:2").fails(t, exitBlind, "none: no such file")
	t.Setenv("PARTITA_TOKEN_FILE", "")
	run(t, "subscriptions", "list", "--url", "http://localhost:2").fails(t, exitBlind, "localhost:2")
	t.Setenv("PARTITA_DB", "")
	run(t, "subscriptions", "list").fails(t, exitBlind, "localhost:1")
	run(t, "verify").fails(t, exitBlind, "localhost:1")
	run(t, "compact", "--to", filepath.Join(other, "copy")).fails(t, exitBlind, "--db is missing")
	run(t, "config", "show").has(t, exitFine) // its flags are settings
}

// TestResumeSaysThatNothingRuns: a subscription that is resumed where no handler runs delivers nothing, and that is told.
func TestResumeSaysThatNothingRuns(t *testing.T) {
	dir := newStore(t)
	keepSubscriptions(t, dir)
	told := "outbox: is paused no more. Nothing runs it now"
	if o := run(t, "subscriptions", "resume", "--db", dir, "--name", "outbox").has(t, exitFine); !strings.Contains(o.stdout, told) {
		t.Errorf("got %s", o.stdout)
	}
	server := startServe(t, dir)
	awaitReady(t, server.URL)
	at := []string{"--url", server.URL, "--name", "outbox"}
	if o := run(t, append([]string{"subscriptions", "resume"}, at...)...).has(t, exitFine); !strings.Contains(o.stdout, told) {
		t.Errorf("got %s", o.stdout)
	}
	d := run(t, append([]string{"subscriptions", "resume", "--json"}, at...)...).has(t, exitFine).json(t)
	if s, _ := d["subscription"].(map[string]any); s["state"] != "not-running" {
		t.Errorf("got %v", d)
	}
	server.stop()
}
