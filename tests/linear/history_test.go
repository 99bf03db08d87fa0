package linear

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/partita-go/partita/messages"
)

// history records operations. Its clock counts: a tick of one operation lies before
// a tick of another exactly if it happened before.
type history struct {
	clock     atomic.Int64
	processes atomic.Int64

	mu      sync.Mutex
	answers []porcupine.Operation
	// open are the writes that nobody knows the outcome of.
	open []porcupine.Operation
	// notes are what happened beside: refusals, faults, restarts.
	notes []porcupine.Annotation
}

func (h *history) tick() int64 { return h.clock.Add(1) }

// process names a client for the page that shows a history: one that does not know
// how its write ended goes on under a new name, since the write may still be under
// way.
func (h *history) process() int { return int(h.processes.Add(1)) - 1 }

// answered records an operation that has been answered. It returns who the client
// is from now on.
func (h *history) answered(process int, called int64, o operation, a answer) int {
	record := porcupine.Operation{ClientId: process, Input: o, Call: called, Output: &a, Return: h.tick()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if a.outcome != unknown {
		h.answers = append(h.answers, record)
		return process
	}
	h.open = append(h.open, record)
	return h.process()
}

// refused notes an operation that has left nothing. If it has, the events are in the
// log and no operation of the history explains them.
func (h *history) refused(process int, called int64, o operation, err error) {
	what := o.describe(&answer{outcome: unknown})
	h.note(porcupine.Annotation{
		ClientId: process, Start: called, End: h.tick(), BackgroundColor: "#dddddd",
		Description: strings.Replace(what, "unknown", "refused", 1), Details: err.Error(),
	})
}

// happened notes what was done to the store or the application.
func (h *history) happened(what string) {
	h.note(porcupine.Annotation{Tag: "world", Start: h.tick(), Description: what, BackgroundColor: "#f5c6a5"})
}

func (h *history) note(a porcupine.Annotation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, a)
}

// complete returns the history once the log is at rest. What nobody knows of and is
// in the log has happened at some time after its call, so its end is open; what is not
// in the log has not, and is left out.
func (h *history) complete(bodies map[string]bool) []porcupine.Operation {
	all := h.answers
	end := h.tick()
	for _, o := range h.open {
		if o.Input == nil || !bodies[o.Input.(*write).drafts[0].body] {
			continue
		}
		o.Return = end
		all = append(all, o)
	}
	return all
}

// patience is how long porcupine may think about one history; it takes milliseconds.
const patience = time.Minute

// check fails the test if the history is not linearizable, and leaves a page that
// shows why.
func check(t testing.TB, name string, all []porcupine.Operation, notes []porcupine.Annotation) {
	t.Helper()
	result, info := porcupine.CheckOperationsVerbose(model(), all, patience)
	if result == porcupine.Ok {
		return
	}
	info.AddAnnotations(notes)
	path := page(t, name, info)
	t.Errorf("%s: linearizable: %s (%d operations): see %s", name, result, len(all), path)
}

func page(t testing.TB, name string, info porcupine.LinearizationInfo) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "partita-linear-") //nolint:usetesting // it must outlive the test
	must(t, err)
	path := filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".html")
	must(t, porcupine.VisualizePath(model(), info, path))
	return path
}

// figures are what all histories of a run amount to.
type figures struct {
	histories, operations, unknown, refused int
	kinds                                   map[string]int
}

func (f *figures) add(h *history) {
	if f.kinds == nil {
		f.kinds = make(map[string]int)
	}
	f.histories++
	f.operations += len(h.answers) + len(h.open)
	f.unknown += len(h.open)
	for _, n := range h.notes {
		if n.Tag == "" {
			f.refused++
		}
	}
	for _, o := range h.answers {
		f.kinds[kindOf(o)]++
	}
}

// kindOf says what an answered operation was, for the count of what was met.
func kindOf(o porcupine.Operation) string {
	w, ok := o.Input.(*write)
	if !ok {
		return strings.TrimPrefix(fmt.Sprintf("%T", o.Input), "linear.")
	}
	a := o.Output.(*answer)
	switch {
	case a.repeated:
		return "repeated"
	case a.outcome == unexpected:
		return "unexpected"
	case a.outcome == mismatched:
		return "mismatched"
	case w.id != (messages.DedupID{}):
		return w.how + " with id"
	}
	return w.how
}

func (f *figures) String() string {
	return fmt.Sprintf("linear: histories=%d operations=%d unknown=%d", f.histories, f.operations, f.unknown)
}
