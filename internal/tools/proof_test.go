package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// printed is what the parts print when all is well.
var printed = map[string]string{
	"sim": "simulation: 1500 seeds, 181377 transactions, 54275 acknowledged, 72113 events in the logs, 201259 faults, 9000 deployments, 5 steps, histories 1f\n",
	"linear": `linear: histories=400 operations=20713 unknown=1420
linear: long history: operations=28633 unknown=60 points=86534
ok  	github.com/partita-go/partita/tests/linear	40s
`,
	"crash": `crash: kills=25 start=1 recovery=2 rebuild=2 load=3 flush=3 stop=1 cut-off=2 acked=13158 repeats=783 lost=0
subscriptions: kills=25 positions=684 caught-up=20 delivered=27124 repeated=134 parked=39876 copies=22347 pauses=173 rewinds=32 lost=0
truncated: planted=612 found=612 open=611 read=0 verify=1 harmless=0 wrong=0
flips: kinds=81 planted=243 found=217 open=115 read=83 verify=19 harmless=26 wrong=0
full: on=ext4 acked=6934 refused-or-closed=201 lost=0
full: on=tmpfs acked=5279 refused-or-closed=201 lost=0
faults: rounds=15 images=36 acked-checks=40138 positions=684 fdatasync-EIO=2 pwrite64-EIO=2 pwrite64-ENOSPC=9 ftruncate-ENOSPC=3 fdatasync-ENOSPC=3 fsync-EIO=0 lost=0
unreadable: injected=map[log.db:4 log.wal:4 state.db:5 subscriptions.db:5] refused=map[log.db:3 log.wal:4 state.db:3 subscriptions.db:3] lost=0
power: of=load images=82 losable=55 cut-off=3 went-on=10 acked-checks=67271 positions=1520 all=14 none=22 end=18 sectors=21 pages=30 beginning=14 lost=0
power: of=recovery with-wal=3 images=40 losable=30 cut-off=0 went-on=10 acked-checks=50000 positions=1520 all=14 none=22 end=18 sectors=21 pages=30 beginning=14 lost=0
power: of=failed-syncs rounds=9 doomed=20 images=42 losable=35 cut-off=0 went-on=10 acked-checks=38286 positions=1052 all=14 none=22 end=18 sectors=21 pages=30 beginning=14 lost=0
`,
	"fuzz":           fmt.Sprintf("fuzz: targets=%d inputs=345678, 4s each\n", provedTargets),
	"mutants-listed": fmt.Sprintf("mutants: planted=%d caught=%[1]d survived=0\n", provedFaults),
	"mutants-small":  "mutate: seed=1 planted=4 caught=4 survived=0 unbuilt=0\n",
	"soak": `soak: seconds=60 acked=228737 repeats=3741 reads=18981 refused=444 unknown=240 busy=196182 deployments=46 starts=37 unclean-stops=35 faults=537 hangs=14 dead-owners=64 time-outs=854 checked=228737 delivered=258644 delivered-again=34 parked=92 positions=536
soak: goroutines at rest: 2, then 2, at most 2: ok
soak: open files at rest: 10, then 10, at most 10: ok
soak: actors at rest: 2, then 2, at most 2: ok
soak: heap under load: 24925560, then 24964736, at most 44195332: ok
soak: heap at rest: 17112272, then 17146488, at most 18160848: ok
soak: goroutines under load: 375, then 369, at most 428: ok
soak: open files under load: 12, then 13, at most 14: ok
`,
}

// proved runs the parts of a proof that print what is given, and end with a status.
func proved(t *testing.T, texts map[string]string, status int, more ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "make.sh")
	if err := os.WriteFile(script, fmt.Appendf(nil, "#!/bin/sh\ncat %q/\"$1\"\nexit %d\n", dir, status), 0o700); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := proof(t.Context(), append([]string{"-make", script, "-out", filepath.Join(dir, "out")}, more...), &out)
	return out.String(), err
}

func TestProof(t *testing.T) {
	out, err := proved(t, printed, 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"ok      simulation       1,500 seeds, 181,377 transactions",
		"ok      kills            25 kills, 2 flushes cut off between transactions, 13,158 acknowledged events checked",
		"ok      subscriptions    25 kills, 27,124 events delivered, 134 repeated",
		"ok      power loss       3 kinds of moments, 164 images, 120 images with something to lose, 3 images between the transactions of a flush, 155,557 acknowledged",
		"ok      failing calls    15 rounds, 19 faults injected",
		"ok      unreadable       18 reads failed, 4 of log.wal, 3 told of log.db, 4 told of log.wal, 3 told of state.db, 3 told of subscriptions.db, 0 lost",
		"ok      flips            243 planted, 217 found, 26 harmless, 0 wrong",
		"ok      full disk        2 file systems, 12,213 acknowledged events checked",
		"ok      growth           7 things that must not grow",
		"proof: all 7 parts hold",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("got\n%s\nwant %q", out, want)
		}
	}
	out, err = proved(t, printed, 1)
	wantError(t, err, "kinds do not hold")
	if strings.Contains(out, "\nok ") || strings.HasPrefix(out, "ok ") {
		t.Errorf("parts that fail: got\n%s", out)
	}
	out, err = proved(t, map[string]string{}, 0)
	wantError(t, err, "kinds do not hold")
	if !strings.Contains(out, "no count: got no line like") {
		t.Errorf("parts that print nothing: got\n%s", out)
	}
}

// TestProofNeedsEachCount takes away what a part prints, one line and one number after
// the other, or makes a number wrong: each is noticed.
func TestProofNeedsEachCount(t *testing.T) {
	for _, p := range proofParts() {
		for i := range p.kinds {
			k := &p.kinds[i]
			own := slices.DeleteFunc(strings.SplitAfter(printed[p.name], "\n"), func(line string) bool {
				return !k.line.MatchString(strings.TrimSuffix(line, "\n"))
			})
			if _, err := k.read(strings.Join(own, ""), false); err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
			if _, err := k.read(strings.ReplaceAll(printed[p.name], own[0], ""), false); len(own) == 1 && err == nil {
				t.Errorf("%s: nobody misses its line", k.name)
			}
			for _, c := range k.counts {
				noticesCount(t, k, c, own)
			}
		}
	}
}

func noticesCount(t *testing.T, k *kind, c count, own []string) {
	t.Helper()
	output := strings.Join(own, "")
	wrong := make(map[string]string) // the output by what is wrong
	if c.number == nil {
		wrong["a line less"] = strings.Join(own[1:], "")
		wrong["a line more"] = output + own[0]
	} else {
		wrong["no number"] = withCount(c, output, "none")
		if c.least > 0 {
			wrong["less"] = withCount(c, output, strconv.Itoa(c.least-1))
		}
		if c.most != unbounded {
			wrong["more"] = withCount(c, output, strconv.Itoa(c.most+1))
		}
	}
	for what, text := range wrong {
		if _, err := k.read(text, false); err == nil || !strings.Contains(err.Error(), c.label) {
			t.Errorf("%s: %s: %s: got error %v, want one about it", k.name, c.label, what, err)
		}
	}
}

// withCount makes all numbers of a count 0, and the first one what is given.
func withCount(c count, output, first string) string {
	var b strings.Builder
	done := 0
	for _, at := range c.number.FindAllStringSubmatchIndex(output, -1) {
		for group := 2; group < len(at); group += 2 {
			b.WriteString(output[done:at[group]] + first)
			first, done = "0", at[group+1]
		}
	}
	return b.String() + output[done:]
}

// TestProofEnds lets a part go on for ever: it ends with what it has started.
func TestProofEnds(t *testing.T) {
	script := filepath.Join(t.TempDir(), "make.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile :; do sleep 60; done | cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	args := []string{"-make", script, "-out", filepath.Join(t.TempDir(), "out"), "-timeout", "100ms", "-match", "^sim$"}
	err := proof(t.Context(), args, &out)
	wantError(t, err, "1 kinds do not hold")
	wantError(t, err, "all parts may take 100ms, and have not ended")
	if !strings.Contains(out.String(), "all parts may take 100ms") || strings.Contains(out.String(), "WaitDelay") {
		t.Errorf("got\n%s", out.String())
	}
}

func TestProofArguments(t *testing.T) {
	wantError(t, proof(t.Context(), []string{"-match", "nobody"}, &strings.Builder{}), "got 0 parts")
	wantError(t, proof(t.Context(), []string{"-jobs", "0"}, &strings.Builder{}), "0 jobs")
}

func TestInputsTried(t *testing.T) {
	const ran = "fuzz: elapsed: 0s, gathering baseline coverage: 0/9 completed\nfuzz: elapsed: 3s, execs: 120 (40/sec), new interesting: 1 (total: 10)\n" +
		"fuzz: elapsed: 4s, execs: 175 (40/sec), new interesting: 1 (total: 10)\nPASS\n"
	if n, err := inputsTried(ran); n != 175 || err != nil {
		t.Errorf("got %d, %v, want 175", n, err)
	}
	_, err := inputsTried("fuzz: elapsed: 0s, gathering baseline coverage: 0/9 completed\nPASS\n")
	wantError(t, err, "no input")
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1_234_567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}
