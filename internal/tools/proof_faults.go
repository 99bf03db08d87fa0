package main

import "strings"

// provedList are the faults that the proof plants: some of each list in tests/mutants, of those whose
// tests fail soon and are in or near the package of the fault, so that little is built. Those of
// deliveries and of lanes take longer: kills and the simulation alone can notice them.
var provedList = []string{
	"epoch-is-ignored-in-the-log", "ended-context-cancels-nothing", "cancelled-transaction-is-flushed",
	"flush-is-forgotten-too-soon", "epoch-of-the-tail-is-ignored", "time-falls", "cancel-keeps-its-numbers", "group-is-cut",
	"position-too-soon",
	"low-id-in-the-log-lowers-the-counter", "old-flush-is-believed", "checkpoint-without-numbers",
	"given-up-too-soon", "held-lane-stores-over-a-rewind",
	"looks-before-it-listens", "cursor-has-two-texts",
	"duplicate-of-what-is-not-durable", "door-stays-open", "fenced-by-what-may-fail", "pending-is-dropped-when-it-fails",
	"wal-sector-of-another-place",
	"damaged-subscription-hides-the-others",
	"request-falls-off-a-full-commit",
	"delete-state-db-though-the-log-is-too-short",
	"numbers-as-long-as-each-other",
	"zone-without-floor",
	"node-starts-again-within-a-second",
	"kit-sees-no-hole",
	"spread-is-a-bound-too-low",
	"move-above-the-end-is-stored",
	"checksums-begin-anew-in-each-line",
	"dump-limit-uses-no-number",
	"group-lets-in-where-a-member-leaves",
	"span-withdrawn-is-kept",
	"client-forgets-the-doubt",
	"given-up-has-stopped",
	"logs-least-level-of-named-groups",
	"room-is-guessed",
	"lost-leadership-is-a-refusal",
	"entry-behind-an-old-head-counts",
	"doubt-is-forgotten",
	"serve-creates-unasked",
}

// provedMutants selects them, for make, which takes a dollar sign only twice.
var provedMutants = "^(" + strings.Join(provedList, "|") + ")$$"

// provedFaults is how many they are.
var provedFaults = len(provedList)
