package sequencer

import (
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestRefusedAt: only the one that is refused fails, wherever it stands in the
// batch; the others are numbered anew, in order, and no number is lost.
func TestRefusedAt(t *testing.T) {
	for at, name := range []string{"first", "middle", "last"} {
		for reason, refuse := range map[string]struct {
			by   func(w *world, at int, m *messages.Append)
			want error
		}{
			"WLog": {func(w *world, _ int, m *messages.Append) {
				m.Workspace = 5
				w.taken[taken{5, messages.SeqWLogOffset, 2}] = true
			}, errConflict},
			"record": {func(w *world, at int, m *messages.Append) {
				m.Drafts[0].Records = []messages.DraftRecord{{Number: 0, New: true}}
				w.taken[taken{1, seqPlain, messages.Number(at) + 1}] = true
			}, errConflict},
			"nobody knows": {func(_ *world, _ int, m *messages.Append) { m.Drafts[0].Body = []byte(poison) }, errPoison},
		} {
			t.Run(name+"/"+reason, func(t *testing.T) {
				w := warm(t, messages.Settings{})
				w.event(5, kindWide)
				ms := []messages.Append{w.one(1, kindWide, seqPlain), w.one(1, kindWide, seqPlain), w.one(1, kindWide, seqPlain)}
				refuse.by(w, at, &ms[at])
				calls := w.batched(ms...)
				w.settle()
				next := messages.Number(1)
				for i, c := range calls {
					if i == at {
						w.mustRefuse(c, refuse.want)
						continue
					}
					if r := w.mustAppend(c); r.Numbers[0].Number != next {
						t.Fatalf("got %+v, want number %d", r, next)
					}
					next++
				}
				w.finish()
			})
		}
	}
}

// rowOf makes a record under the first number that a message wants.
func rowOf(m messages.Append, isNew bool) messages.Append {
	m.Drafts[len(m.Drafts)-1].Records = []messages.DraftRecord{{Number: 0, New: isNew}}
	return m
}

// mustSplit checks which of a batch were refused by a conflict.
func (w *world) mustSplit(calls []*call, refused ...int) {
	w.t.Helper()
	for i, c := range calls {
		if slices.Contains(refused, i) {
			w.mustRefuse(c, errConflict)
		} else {
			w.mustWait(c)
		}
	}
}

// TestConflictRefusesNobodyElse: a key that is taken says nothing about who gets
// another one when he is numbered anew.
func TestConflictRefusesNobodyElse(t *testing.T) {
	explicit := func(m messages.Append, n messages.Number) messages.Append {
		d := &m.Drafts[len(m.Drafts)-1]
		d.Records = append(d.Records, messages.DraftRecord{ID: messages.RecordID{Seq: seqPlain, Number: n}, New: true})
		return m
	}
	second := func(m messages.Append) messages.Append {
		m.Drafts[0].Records = []messages.DraftRecord{{Number: 1, New: true}}
		return m
	}
	plain := func(w *world) messages.Append { return rowOf(w.one(1, kindWide, seqPlain), true) }
	for name, test := range map[string]struct {
		key     taken
		appends func(w *world) []messages.Append
		// refused are those that the first try refuses, never those that are ever.
		refused, never []int
	}{
		"explicit id": {
			taken{1, seqPlain, 5},
			func(w *world) []messages.Append { return []messages.Append{explicit(w.one(1, kindWide), 5), plain(w)} },
			[]int{0}, []int{0},
		},
		"explicit id, and a number above": {
			taken{1, seqPlain, 5},
			func(w *world) []messages.Append {
				return []messages.Append{explicit(w.one(1, kindWide, seqPlain), 5), plain(w), plain(w)}
			},
			[]int{0}, []int{0},
		},
		"number above an explicit id": {
			taken{1, seqPlain, 6},
			func(w *world) []messages.Append {
				m := explicit(w.one(1, kindWide), 5)
				m.Drafts = append(m.Drafts, w.draft(seqPlain))
				return []messages.Append{rowOf(m, true), plain(w)}
			},
			[]int{0}, []int{0},
		},
		"behind an explicit id": {
			taken{1, seqPlain, 1},
			func(w *world) []messages.Append {
				return []messages.Append{plain(w), explicit(w.one(1, kindWide), 5), plain(w)}
			},
			[]int{0}, []int{0},
		},
		"behind an explicit id that this try gives": {
			taken{1, seqPlain, 1},
			func(w *world) []messages.Append {
				return []messages.Append{plain(w), explicit(w.one(1, kindWide, seqPlain), 2)}
			},
			[]int{0}, []int{0},
		},
		"behind an explicit id of one who expects his offset": {
			taken{1, seqPlain, 1},
			func(w *world) []messages.Append {
				now := messages.WLogOffset(w.truth[1].last(messages.SeqWLogOffset))
				next := now + 1
				first, second := w.one(1, kindWide), explicit(w.one(1, kindWide), 50)
				first.Expected, second.Expected = &now, &next
				return []messages.Append{plain(w), first, second, plain(w)}
			},
			[]int{0}, []int{0},
		},
		"before": {
			taken{1, seqPlain, 2},
			func(w *world) []messages.Append { return []messages.Append{plain(w), plain(w), plain(w)} },
			[]int{1, 2}, []int{1, 2},
		},
		"behind an update": {
			taken{1, seqPlain, 1},
			func(w *world) []messages.Append {
				return []messages.Append{plain(w), rowOf(w.one(1, kindWide, seqPlain), false), plain(w)}
			},
			[]int{0}, []int{0},
		},
		"second number": {
			taken{1, seqPlain, 2},
			func(w *world) []messages.Append {
				return []messages.Append{second(w.one(1, kindWide, seqPlain, seqPlain)), plain(w)}
			},
			[]int{0}, []int{0},
		},
		"behind one who needs his second number": {
			taken{1, seqPlain, 1},
			func(w *world) []messages.Append {
				return []messages.Append{plain(w), second(w.one(1, kindWide, seqPlain, seqPlain)), plain(w)}
			},
			[]int{0}, []int{0},
		},
		"second of a group": {
			taken{1, messages.SeqWLogOffset, 4},
			func(w *world) []messages.Append {
				m := w.one(1, kindWide)
				m.Drafts = append(m.Drafts, w.draft())
				return []messages.Append{w.one(1, kindWide), m, w.one(1, kindWide)}
			},
			[]int{1}, []int{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := warm(t, messages.Settings{})
			w.taken[test.key] = true
			calls := w.batched(test.appends(w)...)
			w.write1()
			w.mustSplit(calls, test.refused...)
			w.settle()
			for i, c := range calls {
				if !slices.Contains(test.never, i) {
					w.mustAppend(c)
				}
			}
			w.finish()
		})
	}
}

// TestRefusedGoFirstAgain: of those who were refused some did not fit into the next
// attempt, which is refused too.
func TestRefusedGoFirstAgain(t *testing.T) {
	w := warm(t, messages.Settings{})
	for ws := messages.WSID(5); ws <= 11; ws += 2 {
		w.event(ws, kindWide)
	}
	w.taken[taken{5, messages.SeqWLogOffset, 2}], w.taken[taken{7, messages.SeqWLogOffset, 2}] = true, true
	w.batched(w.one(5, kindWide), w.one(7, kindWide), w.one(9, kindWide), w.one(11, kindWide))
	w.append(w.one(1, kindWide))
	w.reconfigure(messages.Settings{BatchEvents: 2})
	w.write1()
	w.mustBatch(7, 9)
	w.write1()
	w.mustBatch(9, 11)
	w.write1()
	w.mustBatch(1)
	w.finish()
}

// TestManyRefused: many of a batch are refused, each attempt names one. What is written
// for nothing grows with the batch, not with its square.
func TestManyRefused(t *testing.T) {
	w := warm(t, messages.Settings{})
	const half = 64
	var appends []messages.Append
	for _, bad := range w.refusedRows(half) {
		appends = append(appends, bad, w.one(3, kindWide))
	}
	lone := w.append(appends[0])
	w.settle()
	w.mustRefuse(lone, errConflict)
	if w.core.redo != (redo{}) {
		t.Errorf("got %+v after a lone one", w.core.redo)
	}
	calls := w.batched(appends...)
	tried := 0
	for w.core.batch.underWay {
		tried += len(w.core.batch.events)
		w.write1()
	}
	for i, c := range calls {
		if i%2 == 0 {
			w.mustRefuse(c, errConflict)
		} else {
			w.mustAppend(c)
		}
	}
	if tried > 16*half {
		t.Errorf("%d events were handed over for %d appends", tried, 2*half)
	}
	if w.core.redo != (redo{}) {
		t.Errorf("got %+v left", w.core.redo)
	}
	w.finish()
}

// TestFewRefusedOfMany: whoever is not refused is written with many others all the same.
func TestFewRefusedOfMany(t *testing.T) {
	for _, bad := range []int{1, 4, 8, 12, 32} {
		w := warm(t, messages.Settings{})
		appends := w.refusedRows(bad)
		for len(appends) < bad+400 {
			appends = append(appends, w.one(3, kindWide))
		}
		w.batched(appends...)
		attempts, commits := 0, 0
		for w.core.batch.underWay {
			before := len(w.log)
			w.write1()
			attempts++
			if len(w.log) > before {
				commits++
			}
		}
		if attempts > 2*bad+12 || commits > 12 {
			t.Errorf("%d are refused: %d attempts, %d commits", bad, attempts, commits)
		}
		w.finish()
	}
}

// refusedRows returns Appends that create rows which are taken.
func (w *world) refusedRows(n int) (appends []messages.Append) {
	for i := range messages.Number(n) {
		id := messages.RecordID{Seq: seqPlain, Number: 1000 + i}
		w.taken[taken{1, id.Seq, id.Number}] = true
		bad := w.one(1, kindWide)
		bad.Drafts[0].Records = []messages.DraftRecord{{ID: id, New: true}}
		appends = append(appends, bad)
	}
	return appends
}

// TestRedoEndsWithoutAnAttempt: the last of those who are tried again are refused before
// anything is written. Those behind them are not cut into small batches.
func TestRedoEndsWithoutAnAttempt(t *testing.T) {
	w := warm(t, messages.Settings{})
	late := w.one(3, kindWide)
	late.Deadline = w.now
	w.batched(append(w.refusedRows(fewRefusals+2), late)...)
	for range fewRefusals + 1 {
		w.write1()
	}
	for range 8 {
		w.append(w.one(3, kindWide))
	}
	w.now++
	w.write1()
	w.mustBatch(3, 3, 3, 3, 3, 3, 3, 3)
	w.finish()
}

// TestRefusalOfNobody: what the store says about an event that is not in the batch
// is as good as nothing.
func TestRefusalOfNobody(t *testing.T) {
	for _, offset := range []messages.PLogOffset{0, 2, 5, 1 << 63} {
		w := warm(t, messages.Settings{})
		first := w.append(w.one(1, kindWide))
		two := []*call{w.append(w.one(1, kindWide)), w.append(w.one(1, kindWide))}
		w.write1()
		w.mustAppend(first)
		answer := &messages.EventsWritten{
			Generation: w.core.generation, First: 4, Outcome: messages.WriteRefused, Err: errConflict,
			Refused: []messages.RefusedEvent{{PLogOffset: offset + 1, Taken: messages.SequenceNumber{Seq: messages.SeqWLogOffset, Number: 1}}},
		}
		if offset == 2 {
			answer.Refused[0].PLogOffset = 3
		}
		w.leaves[appenderLeaf].jobs = nil
		w.tell(answer)
		w.mustBatch(1)
		w.settle()
		w.mustAppend(two[0])
		w.mustAppend(two[1])
		w.finish()
	}
}

// TestTailFull: Busy, and a flush is due at once.
func TestTailFull(t *testing.T) {
	t.Run("something is unflushed", func(t *testing.T) {
		w := warm(t, messages.Settings{FlushInterval: never})
		c := w.append(w.one(1, kindWide))
		w.writeFault = writeTailFull
		w.write1()
		w.mustBusy(c, messages.BusyUnflushed)
		if w.core.flight.pending == nil {
			t.Fatal("no flush is under way")
		}
		w.settle()
		w.done(w.append(w.one(1, kindWide)))
		if w.core.flight.pending != nil {
			t.Fatal("flushes again")
		}
		w.finish()
	})
	t.Run("during a flush", func(t *testing.T) {
		w := warm(t, messages.Settings{FlushInterval: never})
		w.core.flushDue = true
		c := w.append(w.one(1, kindWide))
		w.write1()
		w.mustAppend(c)
		w.writeFault = writeTailFull
		c = w.append(w.one(1, kindWide))
		w.write1()
		w.mustBusy(c, messages.BusyUnflushed)
		w.settle()
		if w.checkpoint != 4 {
			t.Fatalf("got checkpoint %d, want what was gathered meanwhile flushed too", w.checkpoint)
		}
		w.finish()
	})
	t.Run("nothing is unflushed", func(t *testing.T) {
		w := up(t, messages.Settings{FlushInterval: never})
		w.writeFault = writeTailFull
		c := w.settled(w.append(w.one(1, kindWide)))
		w.mustBusy(c, messages.BusyUnflushed)
		w.mustMeet(c, "Memory")
		w.done(w.append(w.one(1, kindWide)))
		if w.core.flight.pending != nil {
			t.Fatal("flushes for no reason")
		}
		w.finish()
	})
}

// TestAstray: the log never takes a workspace's events. That costs a bounded number
// of actualizations, whoever else is written meanwhile.
func TestAstray(t *testing.T) {
	w := warm(t, messages.Settings{})
	w.event(5, kindWide)
	w.quiesce()
	w.reconfigure(messages.Settings{FlushInterval: never})
	w.done(w.append(w.one(7, kindWide)))
	w.astray[5] = true
	before := w.core.Status().Actualizations
	bad := w.append(w.one(5, kindWide))
	for bad.reply == nil {
		// This one is born and not flushed: it needs no load, and gets ahead.
		w.append(w.one(7, kindWide))
		w.settleBut(readerLeaf)
		w.work(readerLeaf)
		w.deliver(readerLeaf)
		if n := w.core.Status().Actualizations - before; n >= maxDivergences {
			t.Fatalf("%d actualizations", n)
		}
	}
	w.mustRefuse(bad, errDiverged)
	w.settle()
	before = w.core.Status().Actualizations
	for range 5 {
		calls := w.batched(w.one(1, kindWide), w.one(5, kindWide), w.one(3, kindWide))
		w.settle()
		w.mustAppend(calls[0])
		w.mustRefuse(calls[1], errDiverged)
		w.mustAppend(calls[2])
	}
	if n := w.core.Status().Actualizations - before; n != 0 {
		t.Fatalf("%d more actualizations", n)
	}
	clear(w.astray)
	w.done(w.append(w.one(5, kindWide)))
	// It is trusted again.
	c := w.append(w.one(5, kindWide))
	w.writeFault, w.faultyWrites = writeDiverges, 1
	w.settle()
	w.mustAppend(c)
	w.finish()
}

// TestAstrayIsBounded: not every workspace that ever diverged is remembered.
func TestAstrayIsBounded(t *testing.T) {
	var d diverging
	for ws := range messages.WSID(3 * maxDiverging) {
		d.note(ws)
		if _, ok := d[ws]; !ok || len(d) > maxDiverging {
			t.Fatalf("%d workspaces, the last one remembered: %v", len(d), ok)
		}
	}
}
