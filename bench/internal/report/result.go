// Package report writes the results of rows, as lines for programs and as a table
// for people.
package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/partita-go/partita/bench/internal/usage"
)

// What was looked at for written bytes.
const (
	WrittenByCalls  = "wchar"  // of /proc/PID/io, with the process's children
	WrittenAsGrowth = "growth" // of the files
)

// Whose memory and written bytes are told.
const (
	OfServer  = "server"  // the server's process and its children
	OfProgram = "program" // this program, callers included, with the store in it
)

// Result is what a row measured. A row that could not be measured has Unavailable
// or Failed set; what it measured before that is told all the same.
type Result struct {
	Row string `json:"row"`
	// Repeat tells results of one row from each other, from 0 on. Those of several
	// rows with the same Repeat were measured next to each other.
	Repeat     int `json:"repeat"`
	Callers    int `json:"callers"`
	Readers    int `json:"readers,omitempty"`
	Workspaces int `json:"workspaces"`
	// Note says what was measured: versions and the settings that matter.
	Note string `json:"note,omitempty"`

	Warmup time.Duration `json:"warmup_ns"`
	Window time.Duration `json:"window_ns"`
	// Rounds of background work ended in the window, which was made longer until they
	// were RoundsWanted or it was as long as it may be.
	Rounds       uint64 `json:"rounds,omitempty"`
	RoundsWanted uint64 `json:"rounds_wanted,omitempty"`
	// Drain is how long it took after the load until nothing was put off any more.
	Drain time.Duration `json:"drain_ns,omitempty"`
	// Profile is the file of a CPU profile of the window.
	Profile string `json:"cpu_profile,omitempty"`
	// Events were acknowledged in the window, Acknowledged in all.
	Events          uint64   `json:"events"`
	EventsPerSecond float64  `json:"events_per_second"`
	PerSecond       []uint64 `json:"per_second,omitempty"`
	Acknowledged    uint64   `json:"acknowledged"`

	P50  time.Duration `json:"p50_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	Max  time.Duration `json:"max_ns"`

	// Reading is nil if nobody read what was stored.
	Reading *Reading `json:"reading,omitempty"`

	// Numbering is nil unless the numbers begin anew each day.
	Numbering *Numbering `json:"numbering,omitempty"`

	Errors     uint64 `json:"errors"`
	FirstError string `json:"first_error,omitempty"`

	// Files is what the files take at the end.
	Files []usage.Size `json:"files,omitempty"`
	// Written counts all bytes since the setup, WrittenPerEvent over Acknowledged.
	Written         int64   `json:"written_bytes"`
	WrittenPerEvent float64 `json:"written_bytes_per_event"`
	WrittenFrom     string  `json:"written_from,omitempty"`
	// Disk is what the whole disk wrote meanwhile, for whomever; 0 if it does not tell.
	Disk         int64   `json:"disk_bytes"`
	DiskPerEvent float64 `json:"disk_bytes_per_event"`
	// Processor is the processor time since the setup, ProcessorPerEvent over Acknowledged; 0 if the system does not tell.
	Processor         time.Duration `json:"processor_ns"`
	ProcessorPerEvent time.Duration `json:"processor_ns_per_event"`
	// PeakResident is 0 if memory could not be looked at.
	PeakResident  int64  `json:"peak_resident_bytes"`
	PeakAnonymous int64  `json:"peak_anonymous_bytes"`
	Of            string `json:"usage_of,omitempty"`

	// Check says what was compared at the end and held.
	Check       string `json:"check,omitempty"`
	Unavailable string `json:"unavailable,omitempty"`
	Failed      string `json:"failed,omitempty"`
}

// Reading is what readers have seen, from the first event to the last one.
type Reading struct {
	// Lag is of all readers together.
	Lag     Lag      `json:"lag"`
	Readers []Reader `json:"readers"`
}

// Numbering is what the numbers of the days are that ended while they were given out.
type Numbering struct {
	Days int `json:"days"`
	// Doubled counts the events that have the number of another event of their day, without the first
	// one. Missing counts the numbers that no event has, from 1 to the largest one of each day.
	Doubled uint64 `json:"doubled"`
	Missing uint64 `json:"missing"`
}

// Reader is what one reader has seen.
type Reader struct {
	// Seen counts different events, Skipped those that were acknowledged and not seen.
	Seen       uint64 `json:"seen"`
	Skipped    uint64 `json:"skipped"`
	Twice      uint64 `json:"seen_twice"`
	OutOfOrder uint64 `json:"out_of_order"`
	Lag        Lag    `json:"lag"`
}

// Lag is the time from an event's acknowledgement to the moment when a reader has it, 0
// where that comes first. It is told of the events that were acknowledged in the window
// or later.
type Lag struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// faults adds what happened to each reader.
func (r *Reading) faults() (skipped, twice, outOfOrder uint64) {
	for _, reader := range r.Readers {
		skipped += reader.Skipped
		twice += reader.Twice
		outOfOrder += reader.OutOfOrder
	}
	return skipped, twice, outOfOrder
}

// worstP99 is that of the reader whose p99 is the largest.
func (r *Reading) worstP99() time.Duration {
	_, worst := r.spread(func(reader Reader) uint64 { return uint64(reader.Lag.P99) })
	return time.Duration(worst)
}

// spread returns the smallest and the largest figure of a reader.
func (r *Reading) spread(figure func(Reader) uint64) (low, high uint64) {
	for i, reader := range r.Readers {
		value := figure(reader)
		if i == 0 {
			low = value
		}
		low, high = min(low, value), max(high, value)
	}
	return low, high
}

// wholeSeconds is PerSecond without a last second that the window has cut short.
func (r *Result) wholeSeconds() []uint64 {
	return r.PerSecond[:min(len(r.PerSecond), int(r.Window/time.Second))]
}

// stateBytes is what state.db takes at the end, 0 if there is none.
func (r *Result) stateBytes() int64 {
	for _, f := range r.Files {
		if f.Name == "state.db" {
			return f.Bytes
		}
	}
	return 0
}

// Right reports whether the row was measured, what is stored is what was acknowledged,
// and all readers came to the end.
func (r *Result) Right() bool {
	read := r.Readers == 0 || r.Reading != nil && len(r.Reading.Readers) == r.Readers
	return r.Err(false) == nil && r.Events > 0 && r.Check != "" && read
}

// Err is nil if the row was measured and is right.
func (r *Result) Err(allowMissing bool) error {
	switch {
	case r.Failed != "":
		return fmt.Errorf("%s: %s", r.Row, r.Failed)
	case r.Errors > 0:
		return fmt.Errorf("%s: %d calls failed, the first one: %s", r.Row, r.Errors, r.FirstError)
	case r.Unavailable != "" && !allowMissing:
		return fmt.Errorf("%s: %s", r.Row, r.Unavailable)
	}
	return nil
}

// Err joins what is wrong with each of some results.
func Err(results []Result, allowMissing bool) error {
	var all []error
	for i := range results {
		all = append(all, results[i].Err(allowMissing))
	}
	return errors.Join(all...)
}

// WriteLine writes a result as a line of JSON.
func WriteLine(w io.Writer, r *Result) error {
	return json.NewEncoder(w).Encode(r)
}

// ReadLines reads what WriteLine wrote.
func ReadLines(r io.Reader) ([]Result, error) {
	var results []Result
	for lines := json.NewDecoder(r); ; {
		var result Result
		err := lines.Decode(&result)
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", len(results)+1, err)
		}
		if result.Row == "" {
			return nil, fmt.Errorf("result %d: got no row, want its name", len(results)+1)
		}
		results = append(results, result)
	}
}
