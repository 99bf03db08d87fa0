package bench

import (
	"fmt"
	"time"

	"github.com/partita-go/partita/cmd/internal/human"
)

// Level says in a word what a disk is for partita.
type Level string

// The levels, the best one first.
const (
	Good     Level = "good"
	Usable   Level = "usable"
	Poor     Level = "poor"
	NotADisk Level = "not a disk"
)

// What the levels are made of: how long a synced write takes.
const (
	// tooFast is less than any device takes to keep a write.
	tooFast = 15 * time.Microsecond
	// goodSync is what an SSD takes, poorSync what a hard disk takes, or a volume in a network that is far.
	goodSync = 2 * time.Millisecond
	poorSync = 10 * time.Millisecond
	// stall is how much longer the slowest hundredth of the writes may take than the others.
	stall = 20
	// mostly is the share of the time from which on the disk is what limits, partly that from which on it does too.
	mostly, partly = 0.7, 0.4
)

// Verdict says in words what the figures mean.
type Verdict struct {
	Level Level
	Words []string
}

// Verdict returns what the disk is for partita, and what limits.
func (r *Result) Verdict() (v Verdict) {
	say := func(format string, args ...any) { v.Words = append(v.Words, fmt.Sprintf(format, args...)) }
	sync := r.Sync
	switch {
	case sync.P50 < tooFast:
		v.Level = NotADisk
		say("A synced write takes %v: no device is that fast. This is memory, or something that does not keep what it confirms. A loss of power loses events.", human.Duration(sync.P50))
	case sync.P50 < goodSync:
		v.Level = Good
		say("A synced write takes %v, as on a good SSD.", human.Duration(sync.P50))
	case sync.P50 < poorSync:
		v.Level = Usable
		say("A synced write takes %v. That is slow for an SSD: one caller waits for it at each event. Many callers share it.", human.Duration(sync.P50))
	default:
		v.Level = Poor
		say("A synced write takes %v, as on a hard disk or a volume that is far away. One caller gets few events a second. Another disk helps, nothing else does.", human.Duration(sync.P50))
	}
	if sync.P99 > stall*sync.P50 && sync.P99 > goodSync {
		if v.Level == Good {
			v.Level = Usable
		}
		say("One of a hundred takes %v or more: something else keeps the disk busy, or it stalls.", human.Duration(sync.P99))
	}
	if len(r.Appends) > 0 {
		most := r.Appends[len(r.Appends)-1]
		limits := "the processors: the log is written to for %.0f%% of the time only"
		switch {
		case most.Disk >= mostly:
			limits = "the disk: the log is written to for %.0f%% of the time"
		case most.Disk >= partly:
			limits = "the disk and the processors: the log is written to for %.0f%% of the time"
		}
		say("With %d callers it takes %s events a second. What limits is "+limits+".", most.Callers, human.Count(uint64(most.PerSecond)), 100*most.Disk)
	}
	return v
}
