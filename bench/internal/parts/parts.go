// Package parts tells from CPU profiles where the time of an append goes.
package parts

import (
	"regexp"
	"time"

	"github.com/google/pprof/profile"
)

// part is a part of the program. It has the stacks in which one of its functions is,
// unless a part before it has them.
type part struct {
	name      string
	functions *regexp.Regexp
}

// Most parts have goroutines of their own; actors share those of the dispatcher.
var parts = []part{
	{"flusher: projections, state.db", regexp.MustCompile(`/(storage/bolt|actors)\.\(\*flusher\)`)},
	{"committer: admission, log.wal, tail", regexp.MustCompile(`/storage/bolt\.\(\*committer\)`)},
	{"applier: log.db", regexp.MustCompile(`/storage/bolt\.\(\*applier\)`)},
	{"partition actors and the core", regexp.MustCompile(`/actors\.\(\*(partition|reader|actualizer)\)\.Receive`)},
	{"appenders: encoding, ends of keys", regexp.MustCompile(`/actors\.\(\*appender\)\.Receive`)},
	{"mailboxes and the dispatcher", regexp.MustCompile(`/actors\.\(\*Dispatcher\)`)},
	{"callers: drafts, client, answers", regexp.MustCompile(`/bench/internal/load\.\(\*run\)\.call`)},
	{"garbage collection", regexp.MustCompile(`^runtime\.(gcBgMarkWorker|bgsweep|bgscavenge)$`)},
	{"scheduling", regexp.MustCompile(`^runtime\.(mcall|mstart|mstart0|mstart1|systemstack|goexit0|sysmon)$`)},
	{"the rest: measuring, timers", regexp.MustCompile(``)},
}

// What is told apart within each part.
var (
	systemCalls = regexp.MustCompile(`^(internal/runtime/syscall|syscall)\.`)
	allocation  = regexp.MustCompile(`^runtime\.mallocgc$`)
)

// cost is processor time. Calls and Allocation are in Total.
type cost struct {
	total, calls, allocation time.Duration
}

// costs returns what each of the parts takes in a profile.
func costs(p *profile.Profile) []cost {
	kinds := newClassifier()
	all := make([]cost, len(parts))
	cpu := len(p.SampleType) - 1 // the first type counts samples
	for _, s := range p.Sample {
		took := time.Duration(s.Value[cpu])
		c := &all[kinds.partOf(s)]
		c.total += took
		switch {
		case kinds.has(s, systemCalls):
			c.calls += took
		case kinds.has(s, allocation):
			c.allocation += took
		}
	}
	return all
}

// classifier remembers which functions match.
type classifier map[match]bool

type match struct {
	pattern  *regexp.Regexp
	function string
}

func newClassifier() classifier { return make(classifier) }

func (c classifier) partOf(s *profile.Sample) int {
	for i := range parts {
		if c.has(s, parts[i].functions) {
			return i
		}
	}
	return len(parts) - 1 // no function is known
}

// has reports whether a function of the stack matches.
func (c classifier) has(s *profile.Sample, pattern *regexp.Regexp) bool {
	for _, location := range s.Location {
		for _, line := range location.Line {
			if line.Function != nil && c.matches(pattern, line.Function.Name) {
				return true
			}
		}
	}
	return false
}

func (c classifier) matches(pattern *regexp.Regexp, function string) bool {
	key := match{pattern, function}
	matches, known := c[key]
	if !known {
		matches = pattern.MatchString(function)
		c[key] = matches
	}
	return matches
}
