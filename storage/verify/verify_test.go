package verify_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

func run(t *testing.T, s storage.Store, o verify.Options) verify.Report {
	t.Helper()
	r, err := verify.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCleanStorePasses(t *testing.T) {
	r := run(t, newStore(t), verify.Options{})
	want := verify.Report{Partitions: 3, Workspaces: 3, Events: 9, Numbers: 22, Rows: 9}
	if fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", want) || r.Err() != nil {
		t.Errorf("got %s, want %s", r, want)
	}
}

func TestEmptyStorePasses(t *testing.T) {
	m, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, m, verify.Options{}); r.Err() != nil || r.Partitions != 3 || r.Events != 0 {
		t.Errorf("got %s", r)
	}
}

// TestExplicitIDBeforeNumber: an event may bring an explicit id along and be
// given the number above it afterwards.
func TestExplicitIDBeforeNumber(t *testing.T) {
	m, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		t.Fatal(err)
	}
	p := storagetest.Take(t, m, 0)
	p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{16}})
	b := p.Build(storagetest.Spec{Workspace: 3, Explicit: []messages.RecordID{{Seq: 16, Number: 40}}})
	b.Events[0].Numbers = []messages.SequenceNumber{{Seq: 16, Number: 41}, {Seq: 16, Number: 42}}
	if err := m.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	storagetest.Verify(t, m)
}

// place says where a fault must be found.
type place struct {
	check     verify.Check
	partition messages.PartitionID
	offset    messages.PLogOffset
	words     string
}

type planted struct {
	name string
	d    doctored
	at   place
}

// TestFaultsAreFoundAndNamed doctors a clean store in each way.
func TestFaultsAreFoundAndNamed(t *testing.T) {
	for _, p := range slices.Concat(logFaults(), eventFaults(), sequenceFaults(), projectionFaults(), recordFaults(), dedupFaults()) {
		t.Run(p.name, func(t *testing.T) {
			p.d.Store = newStore(t)
			r := run(t, p.d, verify.Options{})
			if r.FaultCount != uint64(len(r.Faults)) || !errors.Is(r.Err(), verify.ErrFaults) {
				t.Errorf("got %d faults, %d in words, error %v", r.FaultCount, len(r.Faults), r.Err())
			}
			found := slices.ContainsFunc(r.Faults, func(f verify.Fault) bool {
				return f.Check == p.at.check && f.Partition == p.at.partition && f.PLogOffset == p.at.offset && strings.Contains(f.Text, p.at.words)
			})
			if !found {
				t.Errorf("want a fault %+v, got %s", p.at, r)
			}
		})
	}
}

func logFaults() []planted {
	drop := func(p messages.PartitionID, offset messages.PLogOffset) func(*messages.Event) bool {
		return func(e *messages.Event) bool { return e.Partition != p || e.PLogOffset != offset }
	}
	end := func(alter func(*storage.Register)) doctored {
		return doctored{register: func(p messages.PartitionID, r *storage.Register) {
			if p == 0 {
				alter(r)
			}
		}}
	}
	return []planted{
		{"a hole in the PLog", both(drop(0, 3)), place{verify.CheckPLog, 0, 4, "offset is 4, want 3"}},
		{"the PLog's first is missing", both(drop(1, 1)), place{verify.CheckPLog, 1, 2, "offset is 2, want 1"}},
		{"the PLog's last is missing", both(drop(0, 7)), place{verify.CheckRegister, 0, 0, "the log at 6"}},
		{"epochs fall", change(0, 3, func(e *messages.Event) { e.Epoch = 9 }), place{verify.CheckEpoch, 0, 4, "epoch is 1, the predecessor has 9"}},
		{"an epoch that nobody took", change(0, 7, func(e *messages.Event) { e.Epoch = 9 }), place{verify.CheckEpoch, 0, 7, "the register has 2"}},
		{"epoch 0", change(0, 1, func(e *messages.Event) { e.Epoch = 0 }), place{verify.CheckEpoch, 0, 1, "epoch is 0"}},
		{"times fall", change(0, 6, func(e *messages.Event) { e.RegisteredAt = 1 }), place{verify.CheckTime, 0, 6, "time is 1 us, the predecessor has 5 us"}},
		{"the register's time is wrong", end(func(r *storage.Register) { r.LastRegisteredAt++ }), place{verify.CheckRegister, 0, 0, "at 8 us"}},
		{"the register lags", end(func(r *storage.Register) { r.Last-- }), place{verify.CheckRegister, 0, 0, "register ends at 6"}},
		{"the checkpoint is beyond the log", end(func(r *storage.Register) { r.Checkpoint = 9 }), place{verify.CheckRegister, 0, 0, "checkpoint is 9, want 1 to 8"}},
		{"checkpoint 0", end(func(r *storage.Register) { r.Checkpoint = 0 }), place{verify.CheckRegister, 0, 0, "checkpoint is 0"}},
		{"the checkpoint is one too low", end(func(r *storage.Register) { r.Checkpoint-- }), place{verify.CheckNumbers, 0, 0, "workspace 6"}},
		{
			"the tail misses an event",
			doctored{tail: func(t []messages.Numbering) []messages.Numbering {
				return slices.DeleteFunc(t, func(n messages.Numbering) bool { return n.PLogOffset == 6 })
			}},
			place{verify.CheckTail, 0, 6, "tail differs"},
		},
		{
			"the tail's numbers differ",
			doctored{tail: func(t []messages.Numbering) []messages.Numbering {
				if len(t) > 0 && len(t[0].Numbers) > 0 {
					t[0].Numbers[0].Number++
				}
				return t
			}},
			place{verify.CheckTail, 0, 5, "tail differs"},
		},
		{
			"the tail goes on behind the log",
			doctored{tail: func(t []messages.Numbering) []messages.Numbering {
				return append(t, messages.Numbering{PLogOffset: 8})
			}},
			place{verify.CheckTail, 0, 0, "goes on at 8"},
		},
	}
}

func eventFaults() []planted {
	return []planted{
		{"another partition", change(0, 2, func(e *messages.Event) { e.Partition = 2 }), place{verify.CheckEvent, 0, 2, "says partition 2"}},
		{"a foreign workspace", change(0, 2, func(e *messages.Event) { e.Workspace = 5 }), place{verify.CheckEvent, 0, 2, "workspace 5 belongs to partition 2"}},
		{"no event kind", change(0, 2, func(e *messages.Event) { e.Kind = 0 }), place{verify.CheckEvent, 0, 2, "no kind"}},
		{"an unknown kind", change(0, 2, func(e *messages.Event) { e.WorkspaceKind = 99 }), place{verify.CheckEvent, 0, 2, "unknown kind 99"}},
		{
			"a kind that changes", change(0, 5, func(e *messages.Event) { e.WorkspaceKind = storagetest.KindCompany }),
			place{verify.CheckKind, 0, 5, "of kind 2, its first event has 1"},
		},
		{
			"a number of an unknown sequence", change(0, 6, func(e *messages.Event) { e.Numbers[0].Seq = 99 }),
			place{verify.CheckEvent, 0, 6, "sequence 99"},
		},
		{
			"a record of an unknown sequence", change(0, 4, func(e *messages.Event) { e.Records[0].ID.Seq = 99 }),
			place{verify.CheckEvent, 0, 4, "sequence 99"},
		},
		{
			"an explicit id above the cap", change(0, 4, func(e *messages.Event) { e.Records[0].ID.Number = 1<<64 - 1 }),
			place{verify.CheckEvent, 0, 4, "explicit id is 18446744073709551615"},
		},
		{"a hole in a WLog", change(0, 5, func(e *messages.Event) { e.WLogOffset++ }), place{verify.CheckWLog, 0, 5, "offset is 4, want 3"}},
		{"a WLog offset twice", change(0, 5, func(e *messages.Event) { e.WLogOffset-- }), place{verify.CheckWLog, 0, 5, "offset is 2, want 3"}},
	}
}

func sequenceFaults() []planted {
	number := func(offset messages.PLogOffset, n messages.Number) doctored {
		return change(0, offset, func(e *messages.Event) { e.Numbers[0].Number = n })
	}
	return []planted{
		{"a sequence starts too high", number(1, 1001), place{verify.CheckSequence, 0, 1, "number is 1001, want 1000"}},
		{"a sequence starts too low", number(1, 1), place{verify.CheckSequence, 0, 1, "number is 1, want 1000"}},
		{"a number twice", number(3, 1000), place{verify.CheckSequence, 0, 3, "number is 1000, want 1001"}},
		{"a gap", number(5, 1003), place{verify.CheckSequence, 0, 5, "number is 1003, want 1002"}},
		{"a number not above an explicit id", number(6, 51), place{verify.CheckSequence, 0, 6, "number is 51, want 61"}},
		{
			"a number above its sequence's limit",
			change(0, 1, func(e *messages.Event) {
				e.Numbers[0] = messages.SequenceNumber{Seq: storagetest.SeqBadge, Number: storagetest.LargestBadge + 1}
			}),
			place{verify.CheckSequence, 0, 1, "want at most 5"},
		},
		{
			"a number above its sequence's end",
			change(0, 1, func(e *messages.Event) {
				e.Numbers[0] = messages.SequenceNumber{Seq: messages.SeqOWRecordID, Number: messages.InitialCRecordID}
			}),
			place{verify.CheckSequence, 0, 1, "want at most 322685000131071"},
		},
	}
}

func projectionFaults() []planted {
	of := func(ws messages.WSID, alter func(*storage.WorkspaceNumbers)) doctored {
		return doctored{numbers: func(n *storage.WorkspaceNumbers) {
			if n.Workspace == ws {
				alter(n)
			}
		}}
	}
	wlog := func(alter func([]messages.Event) []messages.Event) doctored {
		return doctored{wlogs: func(ws messages.WSID, events []messages.Event) []messages.Event {
			if ws == 3 {
				return alter(events)
			}
			return events
		}}
	}
	numbers := place{verify.CheckNumbers, 0, 0, "workspace 3: stored numbers are"}
	return []planted{
		{"a stored number too high", of(3, func(n *storage.WorkspaceNumbers) { n.Numbers[1].Number++ }), numbers},
		{"a stored number too low", of(3, func(n *storage.WorkspaceNumbers) { n.Numbers[0].Number-- }), numbers},
		{"a stored number missing", of(3, func(n *storage.WorkspaceNumbers) { n.Numbers = n.Numbers[:1] }), numbers},
		{"a stored number too many", of(3, func(n *storage.WorkspaceNumbers) {
			n.Numbers = append(n.Numbers, messages.SequenceNumber{Seq: 40})
		}), numbers},
		{"a stored number of the tail", of(4, func(n *storage.WorkspaceNumbers) {
			n.Numbers = []messages.SequenceNumber{{Seq: 1, Number: 2}}
		}), place{verify.CheckNumbers, 1, 0, "workspace 4: stored numbers are [{1 2}], want []"}},
		{"a stored kind wrong", of(3, func(n *storage.WorkspaceNumbers) { n.Kind = 2 }), place{verify.CheckNumbers, 0, 0, "stored kind is 2, want 1"}},
		{"a stored kind of the tail", of(4, func(n *storage.WorkspaceNumbers) { n.Kind = 1 }), place{verify.CheckNumbers, 1, 0, "stored kind is 1, want 0"}},
		{"WLog() ends early", wlog(func(e []messages.Event) []messages.Event { return e[:3] }), place{verify.CheckWLog, 0, 7, "ends before event 4"}},
		{"WLog() goes on", wlog(func(e []messages.Event) []messages.Event { return append(e, e[0]) }), place{verify.CheckWLog, 0, 0, "goes on after event 4"}},
		{"WLog() is out of order", wlog(func(e []messages.Event) []messages.Event {
			e[1], e[2] = e[2], e[1]
			return e
		}), place{verify.CheckWLog, 0, 3, "got PLog offset 5, WLog offset 3, want 3 and 2"}},
		{"WLog() has another body", wlog(func(e []messages.Event) []messages.Event {
			e[2].Body = []byte("other")
			return e
		}), place{verify.CheckWLog, 0, 5, "event 3 of WLog differs"}},
		{"WLog() has another section", wlog(func(e []messages.Event) []messages.Event {
			e[3].Sections[0].Tag++
			return e
		}), place{verify.CheckWLog, 0, 7, "event 4 of WLog differs"}},
		{"WLog() has another record", wlog(func(e []messages.Event) []messages.Event {
			e[0].Records[0].New = false
			return e
		}), place{verify.CheckWLog, 0, 1, "event 1 of WLog differs"}},
	}
}

func recordFaults() []planted {
	row := func(alter func(*storage.Row) bool) doctored {
		return doctored{row: func(r *storage.Row) bool {
			return r.Partition != 0 || r.ID != messages.RecordID{Seq: storagetest.SeqOrder, Number: 2} || alter(r)
		}}
	}
	return []planted{
		{"a row is missing", row(func(*storage.Row) bool { return false }), place{verify.CheckRecords, 0, 3, "record 16/2, written at this offset, is not there"}},
		{"a row has other data", row(func(r *storage.Row) bool {
			r.Data = []byte("other")
			return true
		}), place{verify.CheckRecords, 0, 3, "record 16/2 holds other data"}},
		{"a row names another event", row(func(r *storage.Row) bool {
			r.PLogOffset = 1
			return true
		}), place{verify.CheckRecords, 0, 1, "offset 1 as its writer, want 0, 3"}},
		{"a row of a record that nobody wrote", row(func(r *storage.Row) bool {
			r.ID.Number = 1 << 40
			return true
		}), place{verify.CheckRecords, 0, 3, "no event wrote it"}},
		{"rows out of order", doctored{rows: func(r []storage.Row) []storage.Row {
			slices.Reverse(r)
			return r
		}}, place{verify.CheckRecords, 0, 0, "record 16/3 follows 16/4"}},
		{
			"a record created twice",
			change(0, 5, func(e *messages.Event) { e.Records[0].ID.Number = 1 }),
			place{verify.CheckRecords, 0, 5, "record 16/1 is created again, it was written at offset 1"},
		},
	}
}

// TestDamage: what cannot be read because it is damaged is a fault with its
// place; the other partitions are checked all the same.
func TestDamage(t *testing.T) {
	for op, want := range map[storagetest.Op]place{
		storagetest.OpPLog:     {verify.CheckDamage, 0, 3, "log: "},
		storagetest.OpWLog:     {verify.CheckDamage, 0, 0, "log of the workspace: "},
		storagetest.OpRecords:  {verify.CheckDamage, 0, 0, "records: "},
		storagetest.OpNumbers:  {verify.CheckDamage, 0, 0, "numbers: "},
		storagetest.OpRegister: {verify.CheckDamage, 0, 0, "register: "},
		storagetest.OpTail:     {verify.CheckDamage, 0, 5, "tail: "},
	} {
		t.Run(op.String(), func(t *testing.T) {
			f := storagetest.NewFaulty(newStore(t))
			damage := &storage.DamagedError{Where: "somewhere", Cause: errors.New("checksum")}
			do := storagetest.Fail(damage)
			if op == storagetest.OpPLog {
				do = storagetest.Break(2, damage)
			}
			f.Plant(storagetest.Fault{Op: op, Do: do, Times: 1})
			r := run(t, f, verify.Options{})
			if r.FaultCount != 1 || r.Faults[0].Check != want.check || r.Faults[0].Partition != want.partition ||
				r.Faults[0].PLogOffset != want.offset || !strings.HasPrefix(r.Faults[0].Text, want.words) {
				t.Errorf("want the one fault %+v, got %s", want, r)
			}
			if r.Workspaces == 0 {
				t.Error("the other partitions were not checked")
			}
		})
	}
}

// TestCannotLook: every other error ends the check.
func TestCannotLook(t *testing.T) {
	for _, op := range []storagetest.Op{
		storagetest.OpRegister, storagetest.OpPLog, storagetest.OpTail, storagetest.OpNumbers, storagetest.OpWLog, storagetest.OpRecords,
	} {
		f := storagetest.NewFaulty(newStore(t))
		f.Plant(storagetest.Fault{Op: op, Do: storagetest.Fail(storage.ErrClosed)})
		if r, err := verify.Run(t.Context(), f, verify.Options{}); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("%v: got error %v and %s", op, err, r)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := verify.Run(ctx, newStore(t), verify.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got error %v", err)
	}
}

func TestMaxFaults(t *testing.T) {
	d := both(func(e *messages.Event) bool {
		e.RegisteredAt = -messages.Timestamp(e.PLogOffset)
		return true
	})
	d.Store = newStore(t)
	r := run(t, d, verify.Options{MaxFaults: 2})
	if len(r.Faults) != 2 || r.FaultCount < 8 || !strings.Contains(r.String(), "more") {
		t.Errorf("got %d faults in words of %d: %s", len(r.Faults), r.FaultCount, r)
	}
}

// TestSampling: workspaces that are left out are not read, their numbers are.
func TestSampling(t *testing.T) {
	f := storagetest.NewFaulty(newStore(t))
	if r := run(t, f, verify.Options{SampleEvery: 2}); r.Err() != nil || r.Workspaces != 3 {
		t.Errorf("got %s", r)
	}
	if logs, numbers := f.Calls(storagetest.OpWLog), f.Calls(storagetest.OpNumbers); logs != 2 || numbers != 3 {
		t.Errorf("got %d logs and %d numbers read, want 2 and 3", logs, numbers)
	}
}

func TestProgress(t *testing.T) {
	var seen []verify.Progress
	run(t, newStore(t), verify.Options{Progress: func(p verify.Progress) { seen = append(seen, p) }})
	want := []verify.Progress{
		{Partition: 0, Partitions: 3, Events: 7, Workspaces: 2},
		{Partition: 1, Partitions: 3, Events: 9, Workspaces: 3},
		{Partition: 2, Partitions: 3, Events: 9, Workspaces: 3},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got %+v, want %+v", seen, want)
	}
}
