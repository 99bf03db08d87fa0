package main

import (
	"fmt"
	"regexp"
)

// proofParts are the parts of the proof. The numbers are such that all end within ten
// minutes on two processors, and differ from what the tests do when they are not asked:
// a number that does not arrive is noticed.
func proofParts() []part {
	return []part{
		mutantsPart(),
		{
			name: "sim", args: []string{"sim", "SIMSEEDS=1500"},
			kinds: []kind{kindOf("simulation", `^simulation: `,
				before("seeds", 1500), before("transactions", 100_000), before("acknowledged", 1), before("faults", 1))},
		},
		crashPart(),
		{
			name: "linear", args: []string{"linear", "HISTORIES=400", "ATTEMPTS=30000"},
			kinds: []kind{
				kindOf("linearizability", `^linear: histories=`,
					key("histories", "histories checked", 400), key("operations", "operations", 1), key("unknown", "unknown outcomes", 1)),
				kindOf("long history", `^linear: long history: `,
					key("operations", "operations", 20_000), key("points", "points in order", 30_000)),
			},
		},
		{
			name: "fuzz", args: []string{"fuzz", "FUZZTIME=4s"},
			kinds: []kind{kindOf("fuzzing", `^fuzz: targets=`,
				key("inputs", "inputs", 10_000), key("targets", "targets", 10))},
		},
		{
			name: "soak", args: []string{"soak", "SOAKTIME=60s"},
			kinds: []kind{
				kindOf("soak", `^soak: seconds=`,
					key("seconds", "seconds", 60), key("checked", "acknowledged events checked", 1000), key("deployments", "deployments", 2),
					key("faults", "faults injected", 1), key("hangs", "hangs", 1), key("dead-owners", "dead owners", 1)),
				kindOf("soak deliveries", `^soak: seconds=`,
					key("delivered", "events delivered", 1000), key("delivered-again", "delivered again", 0), key("parked", "parked", 1),
					key("positions", "positions checked", 100)),
				kindOf("growth", `^soak: .*, at most \d+: ok$`, count{"things that must not grow", nil, 7, 7}),
			},
		},
	}
}

// mutantsPart plants the same small changes each time: which ones are drawn must not decide
// whether the proof holds.
func mutantsPart() part {
	return part{
		name: "mutants", args: []string{"mutants", "MUTANTS=" + provedMutants, "MUTANTS_SAMPLE=4", "MUTANTS_SEED=1"},
		kinds: []kind{
			kindOf("planted faults", `^mutants: planted=`,
				key("planted", "planted", 15), key("caught", "caught", 15), none("survived", "not caught")),
			kindOf("small changes", `^mutate: seed=`,
				key("planted", "planted", 4), key("caught", "caught", 4), none("survived", "not caught")),
		},
	}
}

// provedMutants selects about a tenth of the faults that can be planted, by their names: of each
// kind some, and none whose tests take long to fail.
const provedMutants = `ignored|checkpoint-without|lowers|falls|too-soon|cancel|lost-batch|is-dropped|not-durable|fenced-by|asked-twice|stays-open`

func crashPart() part {
	return part{
		name: "crash", args: []string{"crash", "KILLS=20", "IMAGES=80", "FAULTS=15", "FLIPS=3"},
		kinds: []kind{
			kindOf("kills", `^crash: `,
				key("kills", "kills", 20), key("acked", "acknowledged events checked", 1000), key("repeats", "appends repeated", 1), none("lost", "lost")),
			kindOf("subscriptions", `^subscriptions: `,
				key("kills", "kills", 20), key("delivered", "events delivered", 1000), key("repeated", "repeated", 1), key("parked", "parked events checked", 1),
				key("copies", "exactly-once effects checked", 1000), key("pauses", "pauses", 1), key("rewinds", "rewinds", 1), none("lost", "lost")),
			kindOf("power loss", `^power: `,
				key("images", "images", 80), key("acked-checks", "acknowledged events checked", 1000), key("positions", "positions of subscriptions checked", 1000), none("lost", "lost")),
			kindOf("failing calls", `^faults: `,
				count{"faults injected", regexp.MustCompile(`-E[A-Z]+=(\d+)`), 15, unbounded}, key("acked-checks", "acknowledged events checked", 1000), none("lost", "lost")),
			kindOf("flips", `^flips: `,
				key("planted", "planted", 100), key("found", "found", 1), key("harmless", "harmless", 0), none("wrong", "wrong")),
			kindOf("truncations", `^truncated: `,
				key("planted", "planted", 10), key("found", "found", 1), key("harmless", "harmless", 0), none("wrong", "wrong")),
			kindOf("full disk", `^full: `,
				key("acked", "acknowledged events checked", 1000), key("refused-or-closed", "refused", 1), none("lost", "lost")),
		},
	}
}

func kindOf(name, line string, counts ...count) kind {
	return kind{name: name, line: regexp.MustCompile(line), counts: counts}
}

// key is a count that is printed as name=number.
func key(name, label string, least int) count {
	return count{label, regexp.MustCompile(fmt.Sprintf(`(?:^|\s)%s=(\d+)\b`, regexp.QuoteMeta(name))), least, unbounded}
}

// none is a count that must be 0.
func none(name, label string) count {
	c := key(name, label, 0)
	c.most = 0
	return c
}

// before is a count that stands before its label.
func before(label string, least int) count {
	return count{label, regexp.MustCompile(fmt.Sprintf(`\b(\d+) %s\b`, label)), least, unbounded}
}
