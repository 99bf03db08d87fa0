package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// printed is what the parts print when all is well.
var printed = map[string]string{
	"sim": "simulation: 2500 seeds, 275112 transactions, 180112 acknowledged, 190113 events in the logs, 70444 faults, 9000 deployments, 5 steps, histories 1f\n",
	"linear": `linear: histories=400 operations=14000 unknown=700
linear: long history: operations=30000 unknown=60 points=80000
ok  	github.com/partita-go/partita/tests/linear	40s
`,
	"crash": `crash: kills=20 start=1 recovery=2 rebuild=2 load=3 flush=3 stop=1 acked=14816 repeats=338 lost=0
subscriptions: kills=20 positions=684 caught-up=20 delivered=37180 repeated=405 parked=34211 copies=19027 pauses=66 rewinds=27 lost=0
truncated: planted=56 found=56 open=55 read=0 verify=1 harmless=0 wrong=0
flips: kinds=52 planted=156 found=140 open=33 read=45 verify=16 harmless=16 wrong=0
full: on=ext4 acked=28034 refused-or-closed=201 lost=0
full: on=tmpfs acked=22745 refused-or-closed=203 lost=0
faults: rounds=15 images=36 acked-checks=49240 positions=684 fdatasync-EIO=2 pwrite64-EIO=2 pwrite64-ENOSPC=9 ftruncate-ENOSPC=3 fdatasync-ENOSPC=5 fsync-EIO=0 lost=0
unreadable: injected=8 refused=4 lost=0
power: images=80 losable=55 went-on=10 acked-checks=67271 positions=1520 all=14 none=22 end=18 sectors=21 pages=30 beginning=14 lost=0
`,
	"fuzz": "fuzz: targets=14 inputs=123456, 3s each\n",
	"mutants": `mutants: planted=25 caught=25 survived=0
mutate: seed=7 planted=4 caught=4 survived=0 unbuilt=0
`,
	"soak": `soak: seconds=60 acked=145487 repeats=2279 reads=14775 refused=1847 unknown=181 busy=50080 deployments=33 starts=18 unclean-stops=24 faults=1317 hangs=19 dead-owners=43 time-outs=417 checked=145487 delivered=231439 delivered-again=615 parked=79 positions=536
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
func proved(t *testing.T, texts map[string]string, status int) (string, error) {
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
	err := proof(t.Context(), []string{"-make", script, "-out", filepath.Join(dir, "out")}, &out)
	return out.String(), err
}

func TestProof(t *testing.T) {
	out, err := proved(t, printed, 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"ok      simulation       2,500 seeds, 275,112 transactions",
		"ok      kills            20 kills, 14,816 acknowledged events checked",
		"ok      subscriptions    20 kills, 37,180 events delivered, 405 repeated",
		"ok      failing calls    21 faults injected",
		"ok      flips            156 planted, 140 found, 16 harmless, 0 wrong",
		"ok      full disk        50,779 acknowledged events checked",
		"ok      growth           7 things that must not grow",
		"proof: all 6 parts hold",
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
			output := printed[p.name]
			if _, err := k.read(output); err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
			var rest []string
			for line := range strings.SplitSeq(output, "\n") {
				if !k.line.MatchString(line) {
					rest = append(rest, line)
				}
			}
			if _, err := k.read(strings.Join(rest, "\n")); err == nil {
				t.Errorf("%s: nobody misses its line", k.name)
			}
			for _, c := range k.counts {
				noticesCount(t, k, c, output)
			}
		}
	}
}

func noticesCount(t *testing.T, k *kind, c count, output string) {
	t.Helper()
	if c.number == nil { // one line less is too few
		lines := strings.SplitAfter(strings.TrimSpace(output), "\n")
		if _, err := k.read(strings.Join(lines[:len(lines)-1], "")); err == nil {
			t.Errorf("%s: one line may be missing", k.name)
		}
		return
	}
	with := func(number string) string {
		return c.number.ReplaceAllStringFunc(output, func(match string) string {
			groups := c.number.FindStringSubmatch(match)
			return strings.Replace(match, groups[1], number, 1)
		})
	}
	if _, err := k.read(with("none")); err == nil {
		t.Errorf("%s: nobody misses the number of %s", k.name, c.label)
	}
	wrong := 0
	if c.most == 0 {
		wrong = 1
	}
	if _, err := k.read(with(strconv.Itoa(wrong))); err == nil && c.least+c.most != unbounded {
		t.Errorf("%s: %d %s is accepted", k.name, wrong, c.label)
	}
}

// TestProofEnds lets a part go on for ever: it ends with what it has started.
func TestProofEnds(t *testing.T) {
	script := filepath.Join(t.TempDir(), "make.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile :; do sleep 60; done | cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	args := []string{"-make", script, "-out", filepath.Join(t.TempDir(), "out"), "-timeout", "100ms", "-match", "^sim$"}
	wantError(t, proof(t.Context(), args, &out), "1 kinds do not hold")
	if !strings.Contains(out.String(), "deadline exceeded") || strings.Contains(out.String(), "WaitDelay") {
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
