package verify

import (
	"fmt"
	"strings"

	"github.com/partita-go/partita/messages"
)

// Check names an invariant.
type Check string

// The checks.
const (
	// CheckPLog: the offsets of a partition's log are 1, 2, 3 …
	CheckPLog Check = "PLog"
	// CheckEpoch: epochs never fall and do not pass the register's.
	CheckEpoch Check = "epoch"
	// CheckTime: registration times never fall.
	CheckTime Check = "time"
	// CheckEvent: an event agrees with itself and with the descriptor.
	CheckEvent Check = "event"
	// CheckKind: a workspace keeps the kind of its first event.
	CheckKind Check = "kind"
	// CheckWLog: a workspace's log is 1, 2, 3 … in PLog order, and reads the same.
	CheckWLog Check = "WLog"
	// CheckSequence: each sequence starts at its initial value and goes up by one.
	CheckSequence Check = "sequence"
	// CheckRegister: the register says where the log ends.
	CheckRegister Check = "register"
	// CheckTail: the tail says what the events from the checkpoint on say.
	CheckTail Check = "tail"
	// CheckNumbers: the stored numbers are those of the events before the checkpoint.
	CheckNumbers Check = "numbers"
	// CheckRecords: the rows are what the log wrote last.
	CheckRecords Check = "records"
	// CheckDedup: a deduplication id is found at the event that has it.
	CheckDedup Check = "dedup"
	// CheckTogether: events that were appended together stand together.
	CheckTogether Check = "together"
	// CheckDamage: what is stored can be read.
	CheckDamage Check = "damage"
	// CheckLSN: the entries of the physical log are 1, 2, 3 …
	CheckLSN Check = "LSN"
	// CheckPLogIndex: the index of a partition's log is what the log says.
	CheckPLogIndex Check = "PLog index"
	// CheckCheckpoint: a checkpoint is what the log says of its last event.
	CheckCheckpoint Check = "checkpoint"
	// CheckLogEnd: the log has all that the projections had of it.
	CheckLogEnd Check = "log end"
	// CheckConflict: no projection met a foreign key.
	CheckConflict Check = "conflict"
	// CheckPages: the pages of a file make sound trees, and none is lost.
	CheckPages Check = "pages"
	// CheckHeader: nothing stands in a file's header that nobody has put there.
	CheckHeader Check = "header"
	// CheckMissing: the files of the store are there.
	CheckMissing Check = "missing"
	// CheckSubscription: a subscription agrees with the application, and stands in its logs.
	CheckSubscription Check = "subscription"
)

// Fault is one violation of an invariant.
type Fault struct {
	Check Check
	// Where is the place in a file of what is no partition's; else it is empty, and
	// Partition is known. PLogOffset is 0 where the fault is not one event's;
	// Workspace then says whose it is, if it is a workspace's.
	Where      string
	Partition  messages.PartitionID
	PLogOffset messages.PLogOffset
	Workspace  messages.WSID
	// Projection says that the fault is in what can be rebuilt from the log. Only [Files]
	// knows that.
	Projection bool
	// Text says what was found and what was expected.
	Text string
}

func (f Fault) String() string {
	if f.Where != "" {
		return fmt.Sprintf("%s: %s: %s", f.Check, f.Where, f.Text)
	}
	where := fmt.Sprintf("partition %d", f.Partition)
	if f.PLogOffset != 0 {
		where += fmt.Sprintf(", offset %d", f.PLogOffset)
	}
	return fmt.Sprintf("%s: %s: %s", f.Check, where, f.Text)
}

// Report is what a check found.
type Report struct {
	Partitions uint32
	Workspaces uint64
	Events     uint64
	// Numbers counts the numbers given out that were checked, WLog offsets
	// included.
	Numbers uint64
	// Rows counts the records that were compared with the log.
	Rows uint64
	// Subscriptions counts those that were checked.
	Subscriptions uint64
	// Faults are the first faults in words, FaultCount counts all.
	Faults     []Fault
	FaultCount uint64
	// Unread says what was not looked at because of the faults.
	Unread []string
}

// Add counts a fault, and keeps it as far as the options allow.
func (r *Report) Add(o *Options, f Fault) {
	if o.keeps(r) {
		r.Faults = append(r.Faults, f)
	}
	r.count(o, f)
}

// AddFirst is Add for a fault that is to be told before all others, and is kept if any is.
func (r *Report) AddFirst(o *Options, f Fault) {
	r.Faults = append([]Fault{f}, r.Faults...)
	r.Faults = r.Faults[:min(len(r.Faults), max(o.maxFaults(), 0))]
	r.count(o, f)
}

func (r *Report) count(o *Options, f Fault) {
	r.FaultCount++
	if o.EachFault != nil {
		o.EachFault(f)
	}
}

// keeps reports whether one more fault is kept.
func (o *Options) keeps(r *Report) bool { return len(r.Faults) < o.maxFaults() }

func (o *Options) maxFaults() int { return o.WithDefaults().MaxFaults }

// Err returns nil if there is no fault, else an [ErrFaults] that lists those in
// words.
func (r Report) Err() error {
	if r.FaultCount == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrFaults, r)
}

// String returns one line with the counts, and one line for each fault in words.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d events of %d workspaces in %d partitions, %d numbers, %d records",
		r.Events, r.Workspaces, r.Partitions, r.Numbers, r.Rows)
	if r.Subscriptions > 0 {
		fmt.Fprintf(&b, ", %d subscriptions", r.Subscriptions)
	}
	b.WriteString(": ")
	switch r.FaultCount {
	case 0:
		b.WriteString("no fault")
		return b.String()
	case 1:
		b.WriteString("1 fault")
	default:
		fmt.Fprintf(&b, "%d faults", r.FaultCount)
	}
	for _, f := range r.Faults {
		b.WriteString("\n" + f.String())
	}
	if more := r.FaultCount - uint64(len(r.Faults)); more > 0 {
		fmt.Fprintf(&b, "\nand %d more", more)
	}
	for _, what := range r.Unread {
		fmt.Fprintf(&b, "\nnot looked at: %s", what)
	}
	return b.String()
}
