package sim

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/partita-go/partita/messages"
)

// column is what a partition was doing when a fault struck.
type column uint8

const (
	colInitializing column = iota
	colNormal              // nothing is under way
	colOpen                // normal, with a transaction that was granted
	colWriting             // normal, with an owner's write under way
	colAppending           // normal, with a batch in flight
	colAlarming
	colTerminating
	colTerminated
	colFailed
	columns
)

func (c column) String() string {
	return [columns]string{"initial.", "normal", "open", "writing", "appending", "alarming", "terminating", "terminated", "failed"}[c]
}

// matrix counts how often each fault struck in each state, of a partition or of a lane.
type matrix [faultKinds][max(int(columns), laneColumns)]int

func (m *matrix) add(other *matrix) {
	for f := range m {
		for c := range m[f] {
			m[f][c] += other[f][c]
		}
	}
}

// view says how a matrix is printed, and which of its cells can be hit.
type view struct {
	columns []string
	has     func(f fault) bool
	// impossible says why a fault cannot strike in a column, "" if it can.
	impossible func(f fault, column int) string
}

func partitionView() view {
	v := view{has: fault.exists, impossible: func(f fault, c int) string { return impossible(f, column(c)) }}
	for c := range columns {
		v.columns = append(v.columns, c.String())
	}
	return v
}

// hit counts a fault.
func (s *sim) hit(f fault, n *node, p messages.PartitionID) {
	c := n.column(p)
	s.matrix[f][c]++
	s.faults++
	if f >= faultCrash {
		s.notef("%s partition %d, %v: fault: %v", n.name, p, c, f)
	}
}

func (n *node) column(p messages.PartitionID) column {
	switch n.partitions[p].Status().State {
	case messages.StateInitializing:
		return colInitializing
	case messages.StateAlarming:
		return colAlarming
	case messages.StateTerminating:
		return colTerminating
	case messages.StateTerminated:
		return colTerminated
	case messages.StateFailed:
		return colFailed
	case messages.StateNormal:
	}
	switch w := &n.writers[p]; {
	case w.owners > 0:
		return colWriting
	case w.appender > 0:
		return colAppending
	case w.open > 0:
		return colOpen
	}
	return colNormal
}

// report writes the matrix, and returns the cells that are empty although they can
// be hit.
func (m *matrix) report(w io.Writer, v view) (empty []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "fault\t%s\t\n", strings.Join(v.columns, "\t"))
	for f := range faultKinds {
		if !v.has(f) {
			continue
		}
		fmt.Fprintf(t, "%v\t", f)
		for c, name := range v.columns {
			switch n := m[f][c]; {
			case n > 0:
				fmt.Fprintf(t, "%d\t", n)
			case v.impossible(f, c) != "":
				fmt.Fprint(t, "-\t")
			default:
				fmt.Fprint(t, "0\t")
				empty = append(empty, fmt.Sprintf("%v while %s", f, name))
			}
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		empty = append(empty, err.Error())
	}
	return empty
}

// impossible says why a fault cannot strike in a state, "" if it can.
func impossible(f fault, c column) string {
	switch {
	case f == faultUndeploy && (c == colTerminating || c == colTerminated):
		return "a node is undeployed once"
	case f == faultForgotten && c == colNormal:
		return "the transaction that is forgotten makes it open"
	case f == faultTailFull && (c == colNormal || c == colOpen):
		return "what meets a full tail is a write, which makes it writing or appending"
	case f < faultCrash:
		return op(f / fault(modes)).impossible(c)
	}
	return ""
}

// impossible says why an operation cannot be under way in a state, "" if it can.
func (o op) impossible(c column) string {
	switch o {
	case opTakeEpoch, opTail:
		switch c {
		case colNormal, colOpen, colWriting, colAppending, colAlarming:
			return "a partition that replays waits for it before it takes transactions"
		case colTerminating:
			return "a stop of a partition that replays ends it at once"
		case colFailed:
			if o == opTakeEpoch {
				return "nothing else that could fail is under way before the epoch is taken"
			}
		default:
		}
	case opAppend:
		if c == colNormal || c == colOpen {
			return "it makes it appending, or writing if an owner does so too"
		}
	case opWrite:
		if c == colNormal || c == colOpen || c == colAppending {
			return "it makes it writing"
		}
	default:
	}
	return ""
}
