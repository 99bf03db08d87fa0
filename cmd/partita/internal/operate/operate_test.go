package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestWrongUsage(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "no command"},
		{"nonsense", `unknown command "nonsense" (see partita --help)`},
		{"repair --db x", `unknown command "repair"`},
		{"verfy --db x", "did you mean verify?"},
		{"help nonsense", `unknown command "nonsense"`},
		{"completion nonsense", `unknown command "nonsense"`},
		{"completion bash nonsense", `unexpected argument "nonsense"`},
		{"verify -db x", "unknown flag -db: want --db"},
		{"verify -db=x", "unknown flag -db: want --db"},
		{"verify -x", "unknown shorthand flag: 'x' in -x"},
		{"--db x", "unknown flag: --db"},
		{"verify", "want either --db or --url (see partita verify --help)"},
		{"verify --db=", "want either --db or --url"},
		{"verify --db", "flag needs an argument: --db"},
		{"verify --db x y", `unexpected argument "y"`},
		{"verify --db x --max-faults 0", "--max-faults: got 0, want 1 to 1000000"},
		{"verify --db x --max-memory 0", "--max-memory: got 0"},
		{"restore --from x --to y --tail-events 0", "--tail-events: got 0, want 1 to 2147483647"},
		{"backup --db x --to y --tail-events 1", "tail-events"},
		{"inspect --json --db x --url y", "want either --db or --url"},
		{"log", "want either --db or --url"},
		{"log --db x --token-file y", "--token-file goes with --url"},
		{"log --db x --follow", "no server has x open"},
		{"numbers --workspace 1 --url ftp://localhost", "--url: got"},
		{"log --db x --partition 1 --workspace 2", "exclude each other"},
		{"log --db x --partition -1", "--partition"},
		{"log --db x --workspace y", "--workspace"},
		{"log --db x --from y", `"y" for "--from" flag: want a whole number in decimal digits`},
		{"log --db x --limit 0x2", `"0x2" for "--limit" flag: want a whole number in decimal digits`},
		{"log --db x --json=maybe", `"maybe" for "--json" flag: want true or false`},
		{"verify --db x --max-faults x", `"x" for "--max-faults" flag: want a whole number`},
		{"log --db x --partition=", "--partition"},
		{"log --db x --workspace=", "--workspace"},
		{"log --db x --partition= --workspace 2", "exclude each other"},
		{"numbers --db x", "--workspace is missing"},
		{"backup --to x", "want either --db or --url"},
		{"backup --db x", "--to is missing"},
		{"restore --db x --to y", "unknown flag: --db"},
		{"restore --to y", "--from is missing"},
		{"compact --db x", "--to is missing"},
		{"subscriptions", "no command: want one of delete, drop, list"},
		{"subscriptions --db x", "unknown flag: --db"},
		{"subscriptions nonsense --db x", `unknown command "nonsense" (see partita subscriptions --help)`},
		{"subscriptions list", "want either --db or --url"},
		{"subscriptions list --db x --url y", "want either --db or --url"},
		{"subscriptions list --db x --name y", "unknown flag: --name"},
		{"subscriptions list --db x --token-file y", "--token-file goes with --url"},
		{"subscriptions pause --db x", "--name is missing"},
		{"subscriptions pause --db x --name y --offset 1", "unknown flag: --offset"},
		{"subscriptions replay --db x --name y --all", "only a running program has the handler"},
		{"subscriptions replay --url http://localhost:1 --name y --all --offset 1", "--all excludes"},
		{"subscriptions replay --url http://localhost:1 --name y --all --offset=", "--all excludes"},
		{"subscriptions replay --url http://localhost:1 --name y --all --partition=", "--all excludes"},
		{"subscriptions rewind --db x --name y --offset 1", "--partition"},
		{"subscriptions rewind --db x --name y --partition 1", "--offset"},
		{"subscriptions rewind --db x --name y --partition 1 --offset 0", "want a whole number from 1 on"},
		{"subscriptions list --url localhost:1", "--url"},
		{"subscriptions list --url ftp://localhost", "--url: got"},
		{"subscriptions list --url http://a:b@localhost", "--url: got"},
		{"subscriptions list --url http://localhost?x=y", "--url: got"},
		{"serve", "--db is missing"},
		{"serve --db x --connections 0", "--connections: got 0, want 4 to 1048576"},
		{"serve --db x --listen 0.0.0.0:1", "is not a loopback address: it needs a certificate and a token"},
		{"serve --db x --listen y", "missing port"},
		{"serve --db x --tls-key y", "got one of them"},
		{"serve --db x --dump-rate 5", "--dump-rate goes with --dump"},
		{"serve --db x --dump y --dump-rate 0", "--dump-rate: got 0, want 1 to 1000000000"},
		{"serve --db x --dump y --dump-memory 0", "--dump-memory: got 0"},
		{"dumps", "no file: want one at least"},
		{"dumps x --join --holes", "exclude each other"},
		{"dumps x --follow --join", "--follow excludes"},
		{"dumps x y --follow", "--follow: got 2 files, want one"},
		{"dumps x --holes --workspace 3", "--holes excludes"},
		{"dumps x --workspace y", "--workspace"},
		{"dumps x --from noon", "--from: got \"noon\", want a time like"},
		{"dumps x --limit 0", "--limit: got 0"},
	} {
		o := run(t, strings.Fields(tt.args)...)
		o.fails(t, exitBlind, tt.want, "(see partita", "--help)")
		if o.stdout != "" {
			t.Errorf("%s: got stdout %q", tt.args, o.stdout)
		}
	}
}

// commandsOf returns a command and all below it.
func commandsOf(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, below := range c.Commands() {
		all = append(all, commandsOf(below)...)
	}
	return all
}

// Each command helps, within 80 columns, and says what each of its flags is for, and what the exit statuses mean.
func TestHelp(t *testing.T) {
	for _, c := range commandsOf(command()) {
		path := strings.Fields(c.CommandPath())[1:]
		o := run(t, append(path, "--help")...).has(t, exitFine)
		for _, args := range [][]string{append(path, "-h"), append([]string{"help"}, path...)} {
			if other := run(t, args...).has(t, exitFine); other.stdout != o.stdout || other.stderr != "" {
				t.Errorf("%v: got stdout %q, stderr %q, want what --help says", args, other.stdout, other.stderr)
			}
		}
		if c.Short == "" || !strings.Contains(o.stdout, "  "+c.CommandPath()) || !strings.HasSuffix(o.stdout, exits+"\n") {
			t.Errorf("%s: got %q, stderr %q", c.CommandPath(), o.stdout, o.stderr)
		}
		for line := range strings.Lines(o.stdout) {
			if len(line) > 81 {
				t.Errorf("%s: got a line of %d characters: %s", c.CommandPath(), len(line), line)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || !strings.Contains(o.stdout, "  --"+f.Name+" ") {
				t.Errorf("%s: --%s has no help", c.CommandPath(), f.Name)
			}
		})
	}
}

// everyCommand are the commands that open a store; TO is replaced by a new directory.
func everyCommand(dir string) [][]string {
	return append(readingCommands(dir),
		[]string{"subscriptions", "pause", "--db", dir, "--name", "outbox"}, []string{"serve", "--db", dir, "--listen", "127.0.0.1:0"})
}

// readingCommands are those that do not change the store.
func readingCommands(dir string) [][]string {
	return [][]string{
		{"verify", "--db", dir},
		{"inspect", "--db", dir},
		{"log", "--db", dir},
		{"numbers", "--db", dir, "--workspace", "4"},
		{"backup", "--db", dir, "--to", "TO"},
		{"restore", "--from", dir, "--to", "TO"},
		{"compact", "--db", dir, "--to", "TO"},
		{"subscriptions", "list", "--db", dir},
	}
}

func withTarget(t *testing.T, args []string) []string {
	args = append([]string(nil), args...)
	for i := range args {
		if args[i] == "TO" {
			args[i] = filepath.Join(t.TempDir(), "to")
		}
	}
	return args
}

// No command that only reads changes the store, whether it may write there or not, as text and as JSON.
func TestNothingIsChanged(t *testing.T) {
	dir := newStore(t)
	before := contents(t, dir)
	check(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	for _, name := range []string{"log.db", "state.db"} {
		check(t, os.Chmod(filepath.Join(dir, name), 0o400))
	}
	// Those who only read do not keep each other out.
	reader, err := bolt.OpenExisting(limit(t), dir, bolt.Options{ReadOnly: true})
	check(t, err)
	t.Cleanup(func() { check(t, reader.Close(context.Background())) })
	for _, args := range readingCommands(dir) {
		if o := run(t, withTarget(t, args)...).has(t, exitFine); o.stderr != "" || o.stdout == "" {
			t.Errorf("%s: got stderr %q, stdout %q", args[0], o.stderr, o.stdout)
		}
		o := run(t, append(withTarget(t, args), "--json")...).has(t, exitFine)
		if args[0] != "log" && o.json(t)["command"] != args[0] {
			t.Errorf("%s: got %s", args[0], o.stdout)
		}
		untouched(t, dir, before)
	}
}

// What cannot be looked at is one clear line and status 2, from every command.
func TestCannotLook(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(t *testing.T, dir string)
		want string
		// but are commands that can do with it.
		but string
	}{
		"missing": {func(t *testing.T, dir string) { check(t, os.RemoveAll(dir)) }, "no store there", ""},
		"empty":   {func(t *testing.T, dir string) { remove(t, dir, "log.db"); remove(t, dir, "state.db") }, "no store there", ""},
		"foreign": {func(t *testing.T, dir string) {
			check(t, os.WriteFile(filepath.Join(dir, "log.db"), []byte("hello"), 0o600))
		}, "not a file of this store", ""},
		"another bbolt file": {func(t *testing.T, dir string) {
			remove(t, dir, "log.db")
			db, err := bbolt.Open(filepath.Join(dir, "log.db"), 0o600, nil)
			check(t, err)
			check(t, db.Close())
		}, "no header", ""},
		"another store's state": {func(t *testing.T, dir string) {
			check(t, os.Rename(filepath.Join(newStore(t), "state.db"), filepath.Join(dir, "state.db")))
		}, "is of store", "restore"},
		"too short": {loseEnd, "it has lost its end, or state.db is of a longer copy", "verify"},
		"no state":  {func(t *testing.T, dir string) { remove(t, dir, "state.db") }, "state.db is missing", "restore verify inspect log serve pause"},
		"damaged": {func(t *testing.T, dir string) {
			spoilMetaPage(t, filepath.Join(dir, "log.db"))
		}, "meta page 0", "verify"},
		"locked": {lock, "a running process has it open", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newStore(t)
			tt.do(t, dir)
			for _, args := range everyCommand(dir) {
				if strings.Contains(tt.but, args[0]) || strings.Contains(tt.but, args[1]) {
					continue
				}
				args = withTarget(t, args)
				o := run(t, args...)
				o.fails(t, exitBlind, tt.want, dir)
				if strings.Count(o.stderr, tt.want) != 1 {
					t.Errorf("%s: got stderr %q, want %q once", args[0], o.stderr, tt.want)
				}
				if name == "locked" {
					continue // it takes a second
				}
				o = run(t, append(args, "--json")...).has(t, exitBlind)
				if o.stdout != "" || !strings.Contains(o.stderr, tt.want) {
					t.Errorf("%s --json: got stdout %q, stderr %q", args[0], o.stdout, o.stderr)
				}
			}
		})
	}
}

// Whoever needs state.db is told what to do when it is missing.
func TestNoStateSaysWhatToDo(t *testing.T) {
	dir := newStore(t)
	remove(t, dir, "state.db")
	for _, args := range [][]string{
		{"numbers", "--db", dir, "--workspace", "4"},
		{"backup", "--db", dir, "--to", "TO"},
		{"compact", "--db", dir, "--to", "TO"},
		{"subscriptions", "list", "--db", dir},
	} {
		o := run(t, withTarget(t, args)...)
		o.fails(t, exitBlind, "Start the application on it once", "partita restore --from "+dir+" --to NEW")
		if strings.Contains(o.stderr, "no store there") {
			t.Errorf("%s: got stderr %q: there is a store", args[0], o.stderr)
		}
	}
}

// An error of the target is not told as one of the store.
func TestCopyNamesTheTarget(t *testing.T) {
	dir := newStore(t)
	to := filepath.Join(t.TempDir(), strings.Repeat("x", 250)) // and no room for what it is called at first
	for _, args := range [][]string{{"backup", "--db"}, {"restore", "--from"}, {"compact", "--db"}} {
		run(t, append(args, dir, "--to", to)...).fails(t, exitBlind, "partita: "+args[0]+" of "+dir+" to "+to+": mkdir "+to)
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	check(t, os.Remove(filepath.Join(dir, name)))
}

// lock lets another process open the store until the test ends.
func lock(t *testing.T, dir string) { _ = holds(t, dir) }

// holds is lock until what it returns is called.
func holds(t *testing.T, dir string) (release func()) {
	t.Helper()
	child := exec.Command(os.Args[0], holdCommand, dir)
	stdin, err := child.StdinPipe()
	check(t, err)
	stdout, err := child.StdoutPipe()
	check(t, err)
	check(t, child.Start())
	release = sync.OnceFunc(func() {
		check(t, stdin.Close())
		check(t, child.Wait())
	})
	t.Cleanup(release)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || line != "open\n" {
		t.Fatalf("the other process said %q, %v", line, err)
	}
	return release
}

// change writes to a file of a store behind partita's back.
func change(t *testing.T, dir, name, bucket string, fn func(b *bbolt.Bucket) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, name), 0o600, nil)
	check(t, err)
	check(t, db.Update(func(tx *bbolt.Tx) error { return fn(tx.Bucket([]byte(bucket))) }))
	check(t, db.Close())
}

// loseHeads removes the heads of the first n workspaces.
func loseHeads(t *testing.T, dir string, n int) {
	change(t, dir, "state.db", "workspaces", func(b *bbolt.Bucket) error {
		c := b.Cursor()
		for k, _ := c.First(); k != nil && n > 0; k, _ = c.First() {
			if err := c.Delete(); err != nil {
				return err
			}
			n--
		}
		return nil
	})
}

func damageEvent(t *testing.T, dir string) {
	change(t, dir, "log.db", "log", func(b *bbolt.Bucket) error {
		k, v := b.Cursor().First()
		v = bytes.Clone(v)
		v[len(v)-1] ^= 1
		return b.Put(k, v)
	})
}

func TestVerify(t *testing.T) {
	dir := newStore(t)
	o := run(t, "verify", "--db", dir).has(t, exitFine)
	for _, text := range []string{"5 events of 2 workspaces in 2 partitions, 10 numbers, 4 records\n", "every invariant that the files can show holds"} {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("want %q in:\n%s", text, o.stdout)
		}
	}
	loseHeads(t, dir, 2)
	damageEvent(t, dir)
	o = run(t, "verify", "--db", dir)
	o.fails(t, exitFault, dir, "store violates its invariants", "faults")
	for _, text := range []string{"damage: log.db, LSN 1: checksum does not match"} {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("want %q in:\n%s", text, o.stdout)
		}
	}
	o = run(t, "verify", "--db", dir, "--json", "--max-faults", "1").has(t, exitFault)
	d := o.json(t)
	faults, ok := d["faults"].([]any)
	if !ok || len(faults) != 1 || d["ok"] != false || d["fault_count"].(float64) < 2 {
		t.Errorf("got %s", o.stdout)
	}
	first := faults[0].(map[string]any)
	if first["check"] != "damage" || first["where"] != "log.db, LSN 1" || first["projection"] != false {
		t.Errorf("got %v", first)
	}
}

// spoilMetaPage damages the first meta page of a file.
func spoilMetaPage(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	check(t, err)
	content[20] ^= 1
	check(t, os.WriteFile(path, content, 0o600))
}

// A meta page that is damaged is a fault with its place.
func TestVerifyMetaPage(t *testing.T) {
	dir := newStore(t)
	spoilMetaPage(t, filepath.Join(dir, "log.db"))
	o := run(t, "verify", "--db", dir).has(t, exitFault)
	if !strings.Contains(o.stdout, "meta page 0 at byte 0") {
		t.Errorf("got:\n%s", o.stdout)
	}
	if !strings.Contains(o.stdout, "-> copy the meta page") || !strings.Contains(o.stdout, "docs/operating.md") {
		t.Errorf("got:\n%s", o.stdout)
	}
}

// Without state.db log.db can be looked at, nothing is changed, and everybody is told.
func TestWithoutState(t *testing.T) {
	dir := newStore(t)
	logs := [][]string{{"log"}, {"log", "--partition", "0", "--from", "2"}, {"log", "--workspace", "4", "--limit", "2"}}
	var want []string
	for _, args := range logs {
		want = append(want, run(t, append(args, "--db", dir)...).has(t, exitFine).stdout)
	}
	remove(t, dir, "state.db")
	before := contents(t, dir)
	const note = "state.db is missing"
	for i, args := range logs {
		if o := run(t, append(args, "--db", dir)...).has(t, exitFine); o.stdout != want[i] || !strings.Contains(o.stderr, note) {
			t.Errorf("%v: got stderr %q, stdout:\n%s\nwant:\n%s", args, o.stderr, o.stdout, want[i])
		}
	}
	if o := run(t, "log", "--db", dir, "--partition", "2").has(t, exitBlind); !strings.Contains(o.stderr, "--partition: got 2, want 0 to 1") {
		t.Errorf("got stderr %q", o.stderr)
	}
	o := run(t, "inspect", "--db", dir).has(t, exitFine)
	if !strings.Contains(o.stdout, "5 events, 5 of them not in the projections yet, an unknown number of workspaces\n") || !strings.Contains(o.stderr, note) {
		t.Errorf("got stderr %q, stdout:\n%s", o.stderr, o.stdout)
	}
	d := run(t, "inspect", "--db", dir, "--json").has(t, exitFine).json(t)
	if d["state_missing"] != true || d["lag"] != 5.0 || len(d["files"].([]any)) != 1 {
		t.Errorf("got %v", d)
	}
	o = run(t, "verify", "--db", dir)
	o.fails(t, exitFault, dir, ": 1 fault\n")
	if !strings.Contains(o.stdout, "missing: file "+dir+"/state.db: it is not there, so ") || !strings.Contains(o.stdout, "5 events of 2 workspaces") {
		t.Errorf("got:\n%s", o.stdout)
	}
	untouched(t, dir, before)
	damageEvent(t, dir)
	if o := run(t, "verify", "--db", dir).has(t, exitFault); !strings.Contains(o.stdout, "damage: log.db, LSN 1: checksum does not match") ||
		strings.Count(o.stdout, "-> restore from a backup\n") != 3 || strings.Contains(o.stdout, "start the application") {
		t.Errorf("got:\n%s", o.stdout)
	}
}

// golden replaces what differs from run to run.
func golden(text string) string {
	for _, r := range []struct{ pattern, by string }{
		{`store [0-9a-f]{32}`, "store ID"},
		{`(log|state)\.db( +)(\d+) .*`, "$1.db$2$3 SIZES"}, {`format +size +pages +free`, "format, size, pages, free"},
		{`none +none`, "neither"}, {`\n─+`, "\n---"}, {`\n-+`, "\n---"},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	return text
}

func TestInspect(t *testing.T) {
	dir := newStore(t)
	o := run(t, "inspect", "--db", dir).has(t, exitFine)
	const want = `application "shops", 2 partitions, trust level 0, store ID
5 events, 1 of them not in the projections yet, 2 workspaces

Files

 file      format, size, pages, free
---
 log.db         5 SIZES
 state.db       6 SIZES

Partitions

 partition  epoch  last offset  checkpoint  lag  last event at
---
         0      1            3           3    1  2023-11-14T22:13:20.000003Z
         1      1            2           3    0  2023-11-14T22:13:20.000002Z

Sequences

 kind  sequence    id                 from                          to
---
 shop  WLogOffset   1                    1  18,446,744,073,709,551,615
 shop  CRecordID    2  322,685,000,131,072  18,446,744,073,709,551,615
 shop  OWRecordID   3  322,680,000,131,072         322,685,000,131,071
 shop  Invoice     16                    1   9,223,372,036,854,775,807
`
	if got := golden(o.stdout); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	d := run(t, "inspect", "--db", dir, "--json").has(t, exitFine).json(t)
	if d["application"] != "shops" || d["lag"] != 1.0 || d["workspaces"] != 2.0 || len(d["files"].([]any)) != 2 || len(d["partitions"].([]any)) != 2 {
		t.Errorf("got %v", d)
	}
	damageEvent(t, dir)
	change(t, dir, "log.db", "epochs", func(b *bbolt.Bucket) error { return b.Put([]byte{0, 0, 0, 1}, []byte("bad")) })
	if o := run(t, "inspect", "--db", dir).has(t, exitFine); !strings.Contains(o.stdout, "partition 1 has failed: ") {
		t.Errorf("got:\n%s", o.stdout)
	}
}

func TestLog(t *testing.T) {
	dir := newStore(t)
	line := func(n int, middle, body string) string {
		return fmt.Sprintf("LSN %d  partition 0/%d  workspace 4/%d  2023-11-14T22:13:20.00000%dZ  epoch 1  16:%d  creates 16/%d \"row %d\"%s  body %s\n", n+2, n, n, n, n, n, n, middle, body)
	}
	traced := line(2, "  id ab000000000000000000000000000000  trace 0123456789abcdef", "0xff00")
	all := line(1, "", `"invoice 1"`) + traced + line(3, "", `"invoice 3"`)
	for _, tt := range []struct{ args, want string }{
		{"--partition 0", all},
		{"--workspace 4", all},
		{"--workspace 4 --from 3", line(3, "", `"invoice 3"`)},
		{"--partition 0 --limit 1", line(1, "", `"invoice 1"`)},
		{"--partition 0 --from 9", ""},
		{"--limit 0", ""},
		{"--from 3", all},
		{"--from 5 --limit 9", line(3, "", `"invoice 3"`)},
		{"--from 5 --limit 1", line(3, "", `"invoice 3"`)},
		{"--trace 0123456789abcdef", traced},
		{"--trace 0123456789abcdef --workspace 4 --limit 1", traced},
		{"--trace 0123456789abcdef --workspace 4 --from 3", ""},
		{"--trace 0123456789abcdee", ""},
	} {
		if o := run(t, append([]string{"log", "--db", dir}, strings.Fields(tt.args)...)...).has(t, exitFine); o.stdout != tt.want {
			t.Errorf("%s: got:\n%s\nwant:\n%s", tt.args, o.stdout, tt.want)
		}
	}
	if o := run(t, "log", "--db", dir).has(t, exitFine); strings.Count(o.stdout, "\n") != 5 {
		t.Errorf("got:\n%s", o.stdout)
	}
	run(t, "log", "--db", dir, "--partition", "2").fails(t, exitBlind, "--partition: got 2, want 0 to 1")
	o := run(t, "log", "--db", dir, "--workspace", bigWorkspace.String(), "--limit", "1", "--json").has(t, exitFine)
	const want = `{"lsn":"1","partition":1,"plog_offset":"1","workspace":"9223372036854775809","workspace_kind":1,"wlog_offset":"1",` +
		`"registered_at":"2023-11-14T22:13:20.000001Z","epoch":"1","numbers":[{"sequence":16,"number":"1"}],` +
		`"records":[{"sequence":16,"number":"1","new":true,"data_base64":"cm93IDE="}],"body_base64":"aW52b2ljZSAx"}` + "\n"
	if o.stdout != want {
		t.Errorf("got:\n%s\nwant:\n%s", o.stdout, want)
	}
	o = run(t, "log", "--db", dir, "--workspace", "4", "--from", "2", "--limit", "1", "--json").has(t, exitFine)
	if d := o.json(t); d["body_base64"] != "/wA=" || d["body"] != nil || d["dedup_id"] != "ab000000000000000000000000000000" || d["trace"] != "0123456789abcdef" {
		t.Errorf("got %s", o.stdout)
	}
}

func TestNumbers(t *testing.T) {
	dir := newStore(t)
	o := run(t, "numbers", "--db", dir, "--workspace", "4").has(t, exitFine)
	const want = `workspace 4: partition 0, kind 1 (shop), 3 events

Last numbers given out

 id  sequence              first  last  at the checkpoint               largest
---
  1  WLogOffset                1     3                  2  18446744073709551615
  2  CRecordID   322685000131072  neither  18446744073709551615
  3  OWRecordID  322680000131072  neither       322685000131071
 16  Invoice                   1     3                  2   9223372036854775807
`
	if got := golden(o.stdout); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	d := run(t, "numbers", "--db", dir, "--workspace", bigWorkspace.String(), "--json").has(t, exitFine).json(t)
	last := d["sequences"].([]any)[3].(map[string]any)
	if d["workspace"] != "9223372036854775809" || last["last"] != "2" || last["stored"] != "2" || last["name"] != "Invoice" ||
		last["largest"] != "9223372036854775807" || last["nearly_used"] != false {
		t.Errorf("got %v", d)
	}
	run(t, "numbers", "--db", dir, "--workspace", "6").fails(t, exitBlind, "workspace 6 has no event")
}

// A backup, a store restored from it and a compacted one hold the same events.
func TestCopies(t *testing.T) {
	dir, base := newStore(t), t.TempDir()
	events := run(t, "log", "--db", dir).has(t, exitFine).stdout
	id := func(dir string) any {
		return run(t, "inspect", "--db", dir, "--json").has(t, exitFine).json(t)["store_id"]
	}
	backup, restored, compact := filepath.Join(base, "backup"), filepath.Join(base, "restored"), filepath.Join(base, "compact")
	for _, args := range [][]string{
		{"backup", "--db", dir, "--to", backup},
		{"restore", "--from", backup, "--to", restored},
		{"compact", "--db", dir, "--to", compact},
	} {
		to := args[len(args)-1]
		o := run(t, args...).has(t, exitFine)
		if !strings.Contains(o.stdout, "the copy was read again") || !strings.Contains(o.stdout, "5 events in "+to) {
			t.Errorf("%s: got:\n%s", args[0], o.stdout)
		}
		run(t, args...).fails(t, exitBlind, "there is something already", to)
		run(t, "verify", "--db", to).has(t, exitFine)
		if got := run(t, "log", "--db", to).has(t, exitFine).stdout; got != events {
			t.Errorf("%s: got:\n%s\nwant:\n%s", args[0], got, events)
		}
		if same := id(to) == id(dir); same != (args[0] != "restore") {
			t.Errorf("%s: got store id %v, the store has %v", args[0], id(to), id(dir))
		}
	}
	d := run(t, "compact", "--db", dir, "--to", filepath.Join(base, "again"), "--json", "--no-verify").has(t, exitFine).json(t)
	if d["verified"] != false || d["check"] != nil || d["events"] != 5.0 || len(d["files"].([]any)) != 2 {
		t.Errorf("got %v", d)
	}
	damageEvent(t, dir)
	for _, args := range [][]string{{"backup", "--db"}, {"restore", "--from"}, {"compact", "--db"}} {
		to := filepath.Join(base, "bad "+args[0])
		run(t, append(args, dir, "--to", to)...).fails(t, exitFault, "the copy is not kept", "LSN 1")
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s: the copy was kept", args[0])
		}
	}
	entries, err := os.ReadDir(base)
	check(t, err)
	if len(entries) != 4 {
		t.Errorf("got %v, want four copies", entries)
	}
}

// Verify says for each fault what repairs it, and once for each remedy what to do; it changes nothing.
func TestVerifySaysWhatToDo(t *testing.T) {
	for _, tt := range []struct {
		name   string
		do     func(t *testing.T, dir string)
		status int
		want   []string
	}{
		{"sound", func(*testing.T, string) {}, exitFine, []string{"no fault"}},
		{"index", func(t *testing.T, dir string) { loseHeads(t, dir, 1) }, exitFault, []string{"-> delete state.db", "it rebuilds the file from log.db"}},
		{"event", damageEvent, exitFault, []string{"-> restore from a backup", "partita restore --from BACKUP"}},
		{"subscription", func(t *testing.T, dir string) {
			subscribe(t, dir)
			spoilPosition(t, dir)
		}, exitFault, []string{"-> delete subscriptions.db", "all subscriptions are forgotten"}},
		{"log is shorter than a position says", func(t *testing.T, dir string) {
			subscribe(t, dir)
			standsAhead(t, dir)
		}, exitFault, []string{"Not if log.db was put back from an older copy, or has lost its end", "'Subscriptions of another log'"}},
		{"generators of ids", func(t *testing.T, dir string) {
			takeGenerator(t, dir)
			remove(t, dir, "ids.db")
			check(t, os.WriteFile(filepath.Join(dir, "ids.db"), nil, 0o600))
		}, exitFault, []string{"-> deploy with a new launch number", "ids.db away"}},
		{"key of a header", func(t *testing.T, dir string) { strayKey(t, dir, "log.db") }, exitFault, []string{"-> compact", "partita compact --db"}},
		{"key of the header of state.db", func(t *testing.T, dir string) { strayKey(t, dir, "state.db") }, exitFault, []string{"-> delete state.db"}},
		{"no state", func(t *testing.T, dir string) { remove(t, dir, "state.db") }, exitFault, []string{"-> start the application", "it rebuilds the file from log.db"}},
		{"log too short", loseEnd, exitFault, []string{"-> restore from a newer backup", "do not delete state.db", "'A log that is too short'"}},
		{"log too short beside a damaged state.db", func(t *testing.T, dir string) {
			loseEnd(t, dir)
			spoilMetaPage(t, filepath.Join(dir, "state.db"))
		}, exitFault, []string{"state.db, meta page 0", "-> restore from a newer backup"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := newStore(t)
			tt.do(t, dir)
			before := contents(t, dir)
			o := run(t, "verify", "--db", dir).has(t, tt.status)
			for _, text := range tt.want {
				if !strings.Contains(strings.Join(strings.Fields(o.stdout), " "), text) {
					t.Errorf("want %q in:\n%s", text, o.stdout)
				}
			}
			var d struct {
				OK      bool `json:"ok"`
				Faults  []struct{ Remedy string }
				Actions []struct{ Remedy, Text string }
			}
			o = run(t, "verify", "--db", dir, "--json").has(t, tt.status)
			check(t, json.Unmarshal([]byte(o.stdout), &d))
			if strings.Contains(tt.name, "too short") && strings.Contains(o.stdout, `"`+string(deleteState)+`"`) {
				t.Errorf("got %s, want nobody told to delete what knows of the end", o.stdout)
			}
			if d.OK != (tt.status == exitFine) || d.OK != (len(d.Actions) == 0) || len(d.Actions) > 1 {
				t.Errorf("got %s", o.stdout)
			}
			for _, f := range d.Faults {
				if f.Remedy != d.Actions[0].Remedy {
					t.Errorf("got a fault with the remedy %q in %s", f.Remedy, o.stdout)
				}
			}
			untouched(t, dir, before)
		})
	}
}

func takeGenerator(t *testing.T, dir string) {
	t.Helper()
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	_, err = s.NextGenerator(limit(t), 1)
	check(t, err)
	check(t, s.Close(limit(t)))
}

// loseEnd puts an older log.db beside the state.db of a store.
func loseEnd(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "log.db")
	older, err := os.ReadFile(path)
	check(t, err)
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	r, err := s.TakeEpoch(limit(t), 0)
	check(t, err)
	e := event(4, 4)
	e.Epoch = r.Epoch
	check(t, s.Append(limit(t), storage.Batch{Partition: 0, Epoch: r.Epoch, Events: []messages.Event{e}}))
	check(t, s.Flush(limit(t), storage.Flush{
		Partition: 0, Epoch: r.Epoch, Expected: r.Checkpoint, Checkpoint: 5,
		Numbers: []storage.WorkspaceNumbers{{Workspace: 4, Kind: shop, Numbers: []messages.SequenceNumber{{Seq: 1, Number: 4}, {Seq: invoice, Number: 4}}}},
	}))
	check(t, s.Close(limit(t)))
	check(t, os.WriteFile(path, older, 0o600))
}

// A state.db that cannot say whether the log beside it is whole keeps nobody from restoring, but it is told.
func TestRestoreBesideAnotherState(t *testing.T) {
	dir := newStore(t)
	check(t, os.Rename(filepath.Join(newStore(t), "state.db"), filepath.Join(dir, "state.db")))
	const want = "could not be asked of the state.db beside it"
	if o := run(t, withTarget(t, []string{"restore", "--from", dir, "--to", "TO"})...).has(t, exitFine); !strings.Contains(strings.Join(strings.Fields(o.stdout), " "), want) {
		t.Errorf("got:\n%s", o.stdout)
	}
	d := run(t, withTarget(t, []string{"restore", "--from", dir, "--to", "TO", "--json"})...).has(t, exitFine).json(t)
	if text, _ := d["state_unread"].(string); !strings.Contains(text, "is of store") {
		t.Errorf("got %v", d)
	}
	remove(t, dir, "state.db")
	d = run(t, withTarget(t, []string{"restore", "--from", dir, "--to", "TO", "--json"})...).has(t, exitFine).json(t)
	if d["state_unread"] != nil {
		t.Errorf("got %v: there is none to ask", d)
	}
}

func strayKey(t *testing.T, dir, file string) {
	t.Helper()
	change(t, dir, file, "header", func(b *bbolt.Bucket) error { return b.Put([]byte("stray"), nil) })
}

// What verify says of a key of a header helps.
func TestCompactLeavesStrayKeys(t *testing.T) {
	dir, to := newStore(t), filepath.Join(t.TempDir(), "copy")
	subscribe(t, dir)
	takeGenerator(t, dir)
	for _, file := range []string{"log.db", "state.db", "subscriptions.db", "ids.db"} {
		strayKey(t, dir, file)
	}
	run(t, "verify", "--db", dir).has(t, exitFault)
	run(t, "compact", "--db", dir, "--to", to).has(t, exitFine)
	run(t, "verify", "--db", to).has(t, exitFine)
}

// What is to be done follows from all faults, not from those that are told in words.
func TestRemediesOfManyFaults(t *testing.T) {
	dir := newStore(t)
	subscribe(t, dir)
	spoilPosition(t, dir)
	change(t, dir, "log.db", "log", func(b *bbolt.Bucket) error {
		var errs []error
		for lsn := range uint64(150) {
			errs = append(errs, b.Put(binary.BigEndian.AppendUint64(nil, 1000+lsn), []byte("foreign")))
		}
		return errors.Join(errs...)
	})
	o := run(t, "verify", "--db", dir).has(t, exitFault)
	for _, want := range []string{"partita restore --from BACKUP", "all subscriptions are forgotten"} {
		if !strings.Contains(strings.Join(strings.Fields(o.stdout), " "), want) {
			t.Errorf("want %q in:\n%s", want, o.stdout)
		}
	}
}

// spoilPosition damages the first position of a subscription.
func spoilPosition(t *testing.T, dir string) {
	change(t, dir, "subscriptions.db", "positions", func(b *bbolt.Bucket) error {
		k, v := b.Cursor().First()
		return b.Put(k, append(bytes.Clone(v), 1))
	})
}

// subscribe makes a subscription that has read one event.
func subscribe(t *testing.T, dir string) {
	t.Helper()
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	check(t, s.PutSubscription(limit(t), storage.Subscription{Name: "outbox"}))
	check(t, s.MoveSubscription(limit(t), storage.SubscriptionMove{Name: "outbox", Next: map[messages.PartitionID]uint64{0: 2}}))
	check(t, s.Close(limit(t)))
}

// standsAhead moves a subscription behind an event, and puts log.db and state.db back as they were before that.
func standsAhead(t *testing.T, dir string) {
	t.Helper()
	older := bytesOf(t, dir)
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	r, err := s.TakeEpoch(limit(t), 0)
	check(t, err)
	e := event(4, 4)
	e.Epoch = r.Epoch
	check(t, s.Append(limit(t), storage.Batch{Partition: 0, Epoch: r.Epoch, Events: []messages.Event{e}}))
	check(t, s.MoveSubscription(limit(t), storage.SubscriptionMove{Name: "outbox", Next: map[messages.PartitionID]uint64{0: 5}}))
	check(t, s.Close(limit(t)))
	for _, name := range []string{"log.db", "state.db"} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(older[name]), 0o600))
	}
}

func TestInspectSubscriptions(t *testing.T) {
	dir := newStore(t)
	subscribe(t, dir)
	d := run(t, "inspect", "--db", dir, "--json").has(t, exitFine).json(t)
	if d["subscriptions"] != 1.0 || len(d["files"].([]any)) != 3 {
		t.Errorf("got %v", d)
	}
	if o := run(t, "inspect", "--db", dir).has(t, exitFine); !strings.Contains(o.stdout, "\n1 subscription\n") || !strings.Contains(o.stdout, " subscriptions.db ") {
		t.Errorf("got:\n%s", o.stdout)
	}
}

// An inspection knows ids.db: of each launch the last generator. A copy gives no numbers of the launches that it knows.
func TestInspectLaunches(t *testing.T) {
	dir := newStore(t)
	if d := run(t, "inspect", "--db", dir, "--json").has(t, exitFine).json(t); d["launches"] != nil {
		t.Errorf("got %v", d)
	}
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	for _, launch := range []uint32{7, 7, 12} {
		_, err := s.NextGenerator(limit(t), launch)
		check(t, err)
	}
	check(t, s.Close(limit(t)))
	to := filepath.Join(t.TempDir(), "copy")
	run(t, "restore", "--from", dir, "--to", to).has(t, exitFine)
	for at, want := range map[string][2]string{
		dir: {"launch last generator 7 2 12 1", `[map[closed:false last_generator:2 launch:7] map[closed:false last_generator:1 launch:12]]`},
		to:  {"launch last generator 7 closed 12 closed", `[map[closed:true launch:7] map[closed:true launch:12]]`},
	} {
		for range 2 { // with state.db, and without
			o := run(t, "inspect", "--db", at).has(t, exitFine)
			text := strings.Join(strings.Fields(strings.NewReplacer("─", "", "-", "").Replace(o.stdout)), " ")
			if !strings.Contains(text, want[0]) || !strings.Contains(text, " ids.db 1 ") {
				t.Errorf("got:\n%s", o.stdout)
			}
			if d := run(t, "inspect", "--db", at, "--json").has(t, exitFine).json(t); fmt.Sprint(d["launches"]) != want[1] {
				t.Errorf("got %v, want %s", d["launches"], want[1])
			}
			check(t, os.RemoveAll(filepath.Join(at, "state.db")))
		}
	}
}

// A check says how many subscriptions it has looked at.
func TestVerifySubscriptions(t *testing.T) {
	dir := newStore(t)
	subscribe(t, dir)
	if o := run(t, "verify", "--db", dir).has(t, exitFine); !strings.Contains(o.stdout, "4 records, 1 subscription\n") {
		t.Errorf("got:\n%s", o.stdout)
	}
	if d := run(t, "verify", "--db", dir, "--json").has(t, exitFine).json(t); d["subscriptions"] != 1.0 {
		t.Errorf("got %v", d)
	}
}

// What verify says about the projections is true: without state.db the store is sound
// after the next start.
func TestRemedy(t *testing.T) {
	dir := newStore(t)
	loseHeads(t, dir, 1)
	run(t, "verify", "--db", dir).has(t, exitFault)
	remove(t, dir, "state.db")
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	check(t, s.Close(limit(t)))
	run(t, "verify", "--db", dir).has(t, exitFine)
}

// A sequence that ends soon, or has ended, is marked.
func TestNumbersThatEnd(t *testing.T) {
	dir := t.TempDir()
	store, err := bolt.Open(t.Context(), dir, storagetest.Descriptor(messages.TrustNone), bolt.Options{Create: true})
	check(t, err)
	p := storagetest.Take(t, store, 0)
	for range storagetest.LargestBadge {
		p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqBadge}})
	}
	check(t, store.Close(t.Context()))
	if o := run(t, "numbers", "--db", dir, "--workspace", "3").has(t, exitFine); !regexp.MustCompile(`badge +1 +5 +none +5 +used up\n`).MatchString(o.stdout) {
		t.Errorf("got:\n%s", o.stdout)
	}
	d := run(t, "numbers", "--db", dir, "--workspace", "3", "--json").has(t, exitFine).json(t)
	sequences := d["sequences"].([]any)
	badge := sequences[len(sequences)-1].(map[string]any)
	if badge["name"] != "badge" || badge["largest"] != "5" || badge["nearly_used"] != true {
		t.Errorf("got %v", badge)
	}
	for last, want := range map[id]string{0: "", 90: "", 91: "more than 90 % used", 99: "more than 90 % used", 100: "used up"} {
		s := sequenceResult{Last: last, Largest: 100, NearlyUsed: (&messages.Sequence{Initial: 1, Largest: 100}).NearlyUsed(messages.Number(last))}
		if got := s.use(); got != want {
			t.Errorf("got %q after %d, want %q", got, last, want)
		}
	}
}
