package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// inContainers is the block of shell commands that begins with the image.
var inContainers = regexp.MustCompile("(?s)```sh\n(docker build.*?)```")

// docker runs the program in place of a container: in the directory of the machine that is mounted where the image works.
const docker = `#!/bin/sh
[ "$1" = run ] || exit 0
while [ "$1" != partita ]; do
	[ "$1" = -v ] && dir=${2%%:/var/lib/partita}
	shift
done
cd "$dir" && exec "$@"
`

// TestFirstHourInAContainer: the commands of the documents for a container lead to the first event, if a container does
// with the program what the image says.
func TestFirstHourInAContainer(t *testing.T) {
	image, err := os.ReadFile("../../deploy/Dockerfile")
	check(t, err)
	for _, want := range []string{"\nWORKDIR /var/lib/partita\n", "\nENTRYPOINT [\"/usr/local/bin/partita\"]\n"} {
		if !strings.Contains(string(image), want) {
			t.Errorf("there is no %q in the image", want)
		}
	}
	bin := t.TempDir()
	check(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o700))
	firstHour(t, "docs/start.md", inContainers, bin)
}

// commands is the block of shell commands of a page that begins with init.
var commands = regexp.MustCompile("(?s)```sh\n(partita init.*?)```")

// TestFirstHour: the commands of the documents, as they stand there but for the port, lead from nothing to the first event.
// There are four at the most, with the one that unpacks the program.
func TestFirstHour(t *testing.T) {
	for _, page := range []string{"README.md", "docs/start.md"} {
		t.Run(page, func(t *testing.T) {
			if block := firstHour(t, page, commands); len(regexp.MustCompile(`(?m)^\S`).FindAllString(block, -1)) > 3 {
				t.Errorf("there are too many commands: %s", block)
			}
		})
	}
}

// firstHour runs a block of commands of a page, with programs of a directory before all others, and returns it.
func firstHour(t *testing.T, page string, block *regexp.Regexp, before ...string) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is missing: nobody has tried the commands")
	}
	text, err := os.ReadFile("../../" + page)
	check(t, err)
	found := block.FindStringSubmatch(string(text))
	if found == nil {
		t.Fatal("there are no commands")
	}
	port := freePort(t)
	script := strings.ReplaceAll(found[1], "7420", port) + "\nkill $! && wait $!\n"
	shell := command(t, t.TempDir(), "sh", "-euc", script)
	shell.Env = append(os.Environ(), "PATH="+strings.Join(append(before, installed(t), os.Getenv("PATH")), ":"), "PARTITA_LISTEN=127.0.0.1:"+port)
	// What it starts goes with it.
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(t, shell.Start())
	t.Cleanup(func() { _ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) })
	shell.ends(0)
	if want := `"printed":"INV/`; !strings.Contains(shell.stdout.String(), want) || !strings.Contains(shell.stdout.String(), `"number":"1"`) {
		t.Errorf("got %s, %s", &shell.stdout, &shell.stderr)
	}
	return found[1]
}

// edit replaces a text of a file.
func edit(t *testing.T, dir, from, to string) {
	t.Helper()
	file := filepath.Join(dir, "application.toml")
	text, err := os.ReadFile(file)
	check(t, err)
	if !strings.Contains(string(text), from) {
		t.Fatalf("there is no %s in %s", from, text)
	}
	check(t, os.WriteFile(file, []byte(strings.Replace(string(text), from, to, 1)), 0o600))
}

// TestDescriptorLife: a store is made when that is said, grows with its file, and refuses what cannot change.
func TestDescriptorLife(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, nil, "init", "--application", "shops").does(0)
	never := program(t, dir, nil, "serve", "--config", "partita.toml").does(2)
	if want := "Only --create makes a new store"; !strings.Contains(never.stderr.String(), want) {
		t.Errorf("got %s, want %s", &never.stderr, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); err == nil {
		t.Fatal("a store was made, and nobody has said so")
	}
	first := serving(t, dir, "--create")
	first.post(`{"kind": "shop", "wanted": [{"sequence": 16}]}`)
	check(t, first.Process.Signal(syscall.SIGTERM))
	if first.ends(0); !strings.Contains(first.stderr.String(), "a new store was made") || strings.Count(first.stderr.String(), "\n") != 1 {
		t.Errorf("got %s", &first.stderr)
	}

	edit(t, dir, "largest = 99999\n", "largest = 999999\n\n[[kinds.sequences]]\nsequence = 18\nname = \"credit note\"\n\n[[kinds]]\nkind = 2\nname = \"depot\"\n")
	second := serving(t, dir)
	second.post(`{"kind": 1, "wanted": [{"sequence": 18}]}`)
	check(t, second.Process.Signal(syscall.SIGTERM))
	second.ends(0)
	for _, want := range []string{"the store was extended", `sequence 18 \"credit note\" is new`, `largest: 999999, was 99999`, `kind 2 \"depot\" is new`} {
		if !strings.Contains(second.stderr.String(), want) {
			t.Errorf("got %s, want %s", &second.stderr, want)
		}
	}

	edit(t, dir, "partitions = 4", "partitions = 8")
	edit(t, dir, `every = "year"`, `every = "day"`)
	edit(t, dir, `formats = ["INV/{yyyy}/{n:04}"]`, `formats = ["{yyyy}{mm}{dd}-{n}"]`)
	edit(t, dir, "[[kinds]]\nkind = 2\nname = \"depot\"\n", "")
	for _, args := range [][]string{{"serve", "--config", "partita.toml"}, {"serve", "--config", "partita.toml", "--create"}} {
		refused := program(t, dir, nil, args...).does(2)
		for _, want := range []string{
			"partitions: got 8, the store has 4", `sequence 16 "invoice": restart: got day in Europe/Zurich, the store has year in Europe/Zurich`,
			`kind 2 "depot": got none, the store has it`, "partita init --from store",
		} {
			if !strings.Contains(refused.stderr.String(), want) {
				t.Errorf("got %s, want %s", &refused.stderr, want)
			}
		}
	}

	// What the store has can be written down, and served again.
	program(t, dir, nil, "init", "--from", "store", "--dir", "again").does(0)
	check(t, os.Rename(filepath.Join(dir, "again", "application.toml"), filepath.Join(dir, "application.toml")))
	third := serving(t, dir)
	third.post(`{"kind": "shop", "wanted": [{"sequence": 16}, {"sequence": 18}]}`)
	check(t, third.Process.Signal(syscall.SIGINT))
	if third.ends(0); third.stderr.Len() > 0 {
		t.Errorf("got %s", &third.stderr)
	}
	program(t, dir, nil, "verify", "--db", "store").does(0)
}

// TestInitElsewhere: what init has written in another directory is checked, and served, from anywhere.
func TestInitElsewhere(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, nil, "init", "--dir", "start", "--application", "shops").does(0)
	for _, at := range []string{dir, t.TempDir()} {
		program(t, at, nil, "config", "check", filepath.Join(dir, "start", "partita.toml")).does(0)
	}
	program(t, dir, nil, "config", "check", filepath.Join("start", "partita.toml")).does(0)
	check(t, os.Rename(filepath.Join(dir, "start"), filepath.Join(dir, "moved")))
	s := serving(t, filepath.Join(dir, "moved"), "--create")
	check(t, s.Process.Signal(syscall.SIGTERM))
	s.ends(0)
	program(t, dir, nil, "verify", "--db", filepath.Join("moved", "store")).does(0)
}

// TestInitOverwritesNothing: a file that is there stays, and the other one is not written.
func TestInitOverwritesNothing(t *testing.T) {
	for _, name := range []string{"application.toml", "partita.toml"} {
		dir := t.TempDir()
		check(t, os.WriteFile(filepath.Join(dir, name), []byte("mine"), 0o600))
		refused := program(t, dir, nil, "init").does(2)
		if want := name + " is there, and stays as it is"; !strings.Contains(refused.stderr.String(), want) {
			t.Errorf("got %s, want %s", &refused.stderr, want)
		}
		if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
			t.Errorf("got %v, %v", all, err)
		}
	}
	long := strings.Repeat("x", 256)
	for _, name := range []string{long, "a\tb"} {
		program(t, t.TempDir(), nil, "init", "--application", name).does(2)
	}
	program(t, t.TempDir(), nil, "init", "--from", "store", "--application", "x").does(2)
	program(t, t.TempDir(), nil, "init", "--from", "none").does(2)
	program(t, t.TempDir(), nil, "serve", "--db", "x", "--create").does(2)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "a.toml"), []byte("db = \"x\"\ndescriptor = \"none.toml\"\n"), 0o600))
	if wrong := program(t, dir, nil, "config", "check", "a.toml").does(2); !strings.Contains(wrong.stderr.String(), "none.toml") {
		t.Errorf("got %s", &wrong.stderr)
	}
	for i := range 2 { // beside a store that is there, with its path as it was given
		program(t, dir, nil, "init", "--dir", fmt.Sprint(i), "--db", "/var/lib/none").does(0)
	}
}
