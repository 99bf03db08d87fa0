package demo

import "time"

// showResult is what the show has found, in the words of its JSON.
type showResult struct {
	Command    string            `json:"command"`
	OK         bool              `json:"ok"`
	Store      string            `json:"store"`
	Kept       bool              `json:"kept"`
	Commits    number            `json:"commits"`
	Authors    number            `json:"authors"`
	Nights     number            `json:"nights"`
	Processors int               `json:"processors"`
	Crash      *crashResult      `json:"crash,omitempty"`
	Finish     *feedResult       `json:"finish,omitempty"`
	CleanStart *startResult      `json:"clean_start"`
	Partitions []partitionResult `json:"partitions"`
	History    historyResult     `json:"history"`
	// Busiest are the authors with most commits.
	Busiest []authorResult `json:"busiest"`
	All     authorResult   `json:"all"`
	Check   *checkResult   `json:"check"`
	Bytes   fileSizes      `json:"bytes"`
}

// feedResult is about commits that were run.
type feedResult struct {
	Commits   number  `json:"commits"`
	Seconds   seconds `json:"seconds"`
	PerSecond float64 `json:"per_second"`
}

// crashResult is about the process that was killed.
type crashResult struct {
	PID          int    `json:"pid"`
	Acknowledged number `json:"acknowledged"`
	InLog        number `json:"in_log"`
	// NotTold were durable, but the process was killed before it could say so.
	NotTold  number      `json:"not_told"`
	Lost     number      `json:"lost"`
	Seconds  seconds     `json:"seconds"`
	Recovery startResult `json:"recovery"`
}

// startResult is about opening a store, with a full scan for comparison.
type startResult struct {
	Events       number  `json:"events"`
	Replayed     number  `json:"replayed"`
	OpenSeconds  seconds `json:"open_seconds"`
	ReadySeconds seconds `json:"ready_seconds"`
	// ScanSeconds is what reading the whole log takes instead.
	ScanSeconds seconds `json:"scan_seconds"`
}

func (s startResult) total() time.Duration { return time.Duration(s.OpenSeconds + s.ReadySeconds) }

// partitionResult is about one partition.
type partitionResult struct {
	Partition number `json:"partition"`
	Authors   number `json:"authors"`
	Events    number `json:"events"`
	// AtCrash is how many events were in the log after the crash, and Replayed how
	// many of them were replayed, from the checkpoint on.
	AtCrash    number `json:"at_crash"`
	Checkpoint number `json:"checkpoint"`
	Replayed   number `json:"replayed"`
}

// historyResult compares the log with the history.
type historyResult struct {
	Equal number `json:"equal"`
	Wrong number `json:"wrong"`
	First string `json:"first,omitempty"`
}

// complete reports whether the log is the history, and nothing was lost.
func (r *showResult) complete() bool {
	return r.History.Wrong == 0 && r.History.Equal == r.Commits && (r.Crash == nil || r.Crash.Lost == 0)
}
