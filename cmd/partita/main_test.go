package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// programName makes the test's binary the program when it is called by it.
const programName = "partita"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == programName {
		main()
	}
	os.Exit(m.Run())
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// limit bounds what must not hang; it is far above what anything takes.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// installed returns a directory that has the program, for PATH.
func installed(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	dir := t.TempDir()
	check(t, os.Symlink(self, filepath.Join(dir, programName)))
	return dir
}

// process is the program, or a shell that calls it, which runs in a directory.
type process struct {
	*exec.Cmd
	t              testing.TB
	stdout, stderr bytes.Buffer
}

func command(t testing.TB, dir, name string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(limit(t), name, args...), t: t}
	p.Dir, p.Stdout, p.Stderr = dir, &p.stdout, &p.stderr
	return p
}

// program returns the program with arguments, and variables of the environment.
func program(t testing.TB, dir string, environment []string, args ...string) *process {
	t.Helper()
	p := command(t, dir, filepath.Join(installed(t), programName), args...)
	p.Env = append(os.Environ(), environment...)
	return p
}

// ends waits for a process and checks its status.
func (p *process) ends(want int) *process {
	p.t.Helper()
	if err := p.Wait(); p.ProcessState.ExitCode() != want {
		p.t.Fatalf("got %v, want status %d, stdout %q, stderr %q", err, want, &p.stdout, &p.stderr)
	}
	return p
}

// does runs a process that must end with a status.
func (p *process) does(want int) *process {
	p.t.Helper()
	check(p.t, p.Start())
	return p.ends(want)
}

// server is a store that is served by a process.
type server struct {
	*process
	URL string
}

// serving starts to serve what init has written into a directory, at a free port, and waits until it says where.
func serving(t testing.TB, dir string, args ...string) *server {
	t.Helper()
	all := append([]string{"serve", "--config", "partita.toml", "--listen", "127.0.0.1:0", "--json"}, args...)
	s := &server{process: program(t, dir, nil, all...)}
	s.Stdout = nil
	out, err := s.StdoutPipe()
	check(t, err)
	check(t, s.Start())
	t.Cleanup(func() { _ = s.Process.Kill() })
	told := json.NewDecoder(bufio.NewReader(out))
	if err := told.Decode(s); err != nil {
		_ = s.Wait()
		t.Fatalf("%v: %s", err, &s.stderr)
	}
	return s
}

// freePort returns a port that nobody listens at just now.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	check(t, err)
	check(t, l.Close())
	return port
}

// post appends an event to workspace 42, which must be taken, and returns the answer.
func (s *server) post(body string) string {
	s.t.Helper()
	response, err := http.Post(s.URL+"/v1/workspaces/42/events", "application/json", strings.NewReader(body))
	check(s.t, err)
	defer response.Body.Close()
	var answer bytes.Buffer
	_, err = answer.ReadFrom(response.Body)
	check(s.t, err)
	if response.StatusCode != http.StatusCreated {
		s.t.Fatalf("got %s: %s", response.Status, &answer)
	}
	return answer.String()
}
