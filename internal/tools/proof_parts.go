package main

import (
	"fmt"
	"regexp"
)

// proofParts are the parts of the proof. The numbers are such that all end within ten
// minutes on two processors, and differ from what the tests do when they are not asked:
// a number that does not arrive is noticed.
//
// What is asked for is counted exactly. What depends on chance, or on how fast the machine is, is
// at least about half of what a slow machine has reached: less says that the load did not come,
// though nothing failed.
func proofParts() []part {
	return []part{listedPart(), smallPart(), simPart(), crashPart(), linearPart(), fuzzPart(), soakPart()}
}

func simPart() part {
	return part{
		name: "sim", args: []string{"sim", "SIMSEEDS=1500"},
		kinds: []kind{kindOf("simulation", `^simulation: `,
			before("seeds", 1500).exactly(), before("transactions", 100_000), before("acknowledged", 27_000), before("faults", 100_000))},
	}
}

func linearPart() part {
	return part{
		name: "linear", args: []string{"linear", "HISTORIES=400", "ATTEMPTS=30000"},
		kinds: []kind{
			kindOf("linearizability", `^linear: histories=`,
				key("histories", "histories checked", 400).exactly(), key("operations", "operations", 10_000), key("unknown", "unknown outcomes", 500)),
			kindOf("long history", `^linear: long history: `,
				key("operations", "operations", 20_000), key("unknown", "unknown outcomes", 10), key("points", "points in order", 43_000)),
		},
	}
}

// provedTargets is how many fuzz targets there are.
const provedTargets = 33

func fuzzPart() part {
	return part{
		name: "fuzz", args: []string{"fuzz", "FUZZTIME=4s"},
		kinds: []kind{kindOf("fuzzing", `^fuzz: targets=`,
			key("inputs", "inputs", 100_000), key("targets", "targets", provedTargets).exactly())},
	}
}

func soakPart() part {
	return part{
		name: "soak", args: []string{"soak", "SOAKTIME=60s"},
		kinds: []kind{
			kindOf("soak", `^soak: seconds=`,
				key("seconds", "seconds", 60), key("checked", "acknowledged events checked", 25_000), key("deployments", "deployments", 12),
				key("faults", "faults injected", 150), key("hangs", "hangs", 5), key("dead-owners", "dead owners", 15)),
			kindOf("soak deliveries", `^soak: seconds=`,
				key("delivered", "events delivered", 30_000), key("delivered-again", "delivered again", 5), key("parked", "parked", 20),
				key("positions", "positions checked", 250)),
			kindOf("growth", `^soak: .*, at most \d+: ok$`, lines("things that must not grow", 7)),
		},
	}
}

func listedPart() part {
	return part{
		name: "mutants-listed", args: []string{"mutants-listed", "MUTANTS=" + provedMutants},
		kinds: []kind{kindOf("planted faults", `^mutants: planted=`,
			key("planted", "planted", provedFaults).exactly(), key("caught", "caught", provedFaults).exactly(), none("survived", "not caught"))},
	}
}

// smallPart plants the same small changes each time: which ones are drawn must not decide
// whether the proof holds.
func smallPart() part {
	return part{
		name: "mutants-small", args: []string{"mutants-small", "MUTANTS_SAMPLE=4", "MUTANTS_SEED=1"},
		kinds: []kind{kindOf("small changes", `^mutate: seed=`,
			key("planted", "planted", 4).exactly(), key("caught", "caught", 4).exactly(), none("survived", "not caught"))},
	}
}

func crashPart() part {
	return part{
		name: "crash", args: []string{"crash", "KILLS=20", "IMAGES=80", "FAULTS=15", "FLIPS=3"},
		kinds: []kind{
			kindOf("kills", `^crash: `,
				key("kills", "kills", 20), key("cut-off", "flushes cut off between transactions", 1), key("acked", "acknowledged events checked", 6500), key("repeats", "appends repeated", 150), none("lost", "lost")),
			kindOf("subscriptions", `^subscriptions: `,
				key("kills", "kills", 20), key("delivered", "events delivered", 13_500), key("repeated", "repeated", 60), key("parked", "parked events checked", 17_000),
				key("copies", "exactly-once effects checked", 9500), key("pauses", "pauses", 30), key("rewinds", "rewinds", 13), none("lost", "lost")),
			powerKind(),
			callsKind(),
			unreadableKind(),
			// Of about ten flipped bits one is in a place that nobody uses.
			kindOf("flips", `^flips: `,
				key("planted", "planted", 210), key("found", "found", 180), key("harmless", "harmless", 0).atMost(50), none("wrong", "wrong")),
			kindOf("truncations", `^truncated: `,
				key("planted", "planted", 500), key("found", "found", 500).as("planted"), none("harmless", "harmless"), none("wrong", "wrong")),
			kindOf("full disk", `^full: `,
				lines("file systems", 2), key("acked", "acknowledged events checked", 6000), key("refused-or-closed", "refused", 200), none("lost", "lost")).
				countedBy("TestFullFileSystem"),
		},
	}
}

// powerKind counts images of a load, and half as many each of recoveries and of failed syncs.
func powerKind() kind {
	return kindOf("power loss", `^power: `,
		lines("kinds of moments", 3), key("images", "images", 160), key("losable", "images with something to lose", 80),
		key("cut-off", "images between the transactions of a flush", 1),
		key("acked-checks", "acknowledged events checked", 75_000), key("positions", "positions of subscriptions checked", 2000), none("lost", "lost")).
		countedBy("TestPowerLoss", "TestPowerLossAgain", "TestPowerLossAfterFailedSync")
}

func callsKind() kind {
	return kindOf("failing calls", `^faults: `,
		key("rounds", "rounds", 15).exactly(), total("faults injected", `-E[A-Z]+=(\d+)`, 15), key("images", "images", 18),
		key("acked-checks", "acknowledged events checked", 20_000), none("lost", "lost")).
		countedBy("TestFailingCalls")
}

// unreadableKind counts the reads that failed, of each file four rounds; a file that is read again in
// other ways, as bbolt's are, is not refused each time, but log.wal is.
func unreadableKind() kind {
	each := func(of, file string) string { return of + `=map\[(?:[^]]* )?` + regexp.QuoteMeta(file) + `:(\d+)` }
	k := kindOf("unreadable", `^unreadable: `,
		total("reads failed", `injected=map\[log\.db:(\d+) log\.wal:(\d+) state\.db:(\d+) subscriptions\.db:(\d+)\]`, 16),
		total("of log.wal", each("injected", "log.wal"), 4))
	for _, file := range []string{"log.db", "log.wal", "state.db", "subscriptions.db"} {
		k.counts = append(k.counts, total("told of "+file, each("refused", file), 1))
	}
	k.counts = append(k.counts, none("lost", "lost"))
	k.counts[3] = k.counts[3].as("of log.wal")
	return k.countedBy("TestUnreadableFiles")
}

func kindOf(name, line string, counts ...count) kind {
	return kind{name: name, line: regexp.MustCompile(line), counts: counts}
}

// countedBy names the tests that count a kind and are skipped where the machine has not what they
// need.
func (k kind) countedBy(tests ...string) kind {
	k.tests = tests
	return k
}

// total is a count of all numbers that an expression finds.
func total(label, number string, least int) count {
	return count{label: label, number: regexp.MustCompile(number), least: least, most: unbounded}
}

// key is a count that is printed as name=number.
func key(name, label string, least int) count {
	return total(label, fmt.Sprintf(`(?:^|\s)%s=(\d+)\b`, regexp.QuoteMeta(name)), least)
}

// none is a count that must be 0.
func none(name, label string) count { return key(name, label, 0).exactly() }

// before is a count that stands before its label.
func before(label string, least int) count {
	return total(label, fmt.Sprintf(`\b(\d+) %s\b`, label), least)
}

// lines counts the lines.
func lines(label string, n int) count { return count{label: label, least: n, most: n} }

// exactly makes the least number the only one.
func (c count) exactly() count { return c.atMost(c.least) }

func (c count) atMost(n int) count {
	c.most = n
	return c
}

// as wants a number that is equal to an earlier one.
func (c count) as(label string) count {
	c.same = label
	return c
}
