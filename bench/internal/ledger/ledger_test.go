package ledger

import (
	"strings"
	"sync"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		numbers []uint64
		stored  uint64
		failed  uint64
		want    string // part of the error; empty: none
	}{
		"nothing":                     {},
		"all":                         {numbers: []uint64{2, 1, 3}, stored: 3},
		"many":                        {numbers: []uint64{1, 64, 65, 2}, stored: 65, failed: 61},
		"lost at the end":             {numbers: []uint64{1, 2, 3}, stored: 2, want: "acknowledged number 3, got only 2 stored"},
		"stored by a failed call":     {numbers: []uint64{1, 3}, stored: 3, failed: 1},
		"stored by nobody":            {numbers: []uint64{1, 3}, stored: 3, want: "1 events stored and not acknowledged"},
		"more than the failed stored": {numbers: []uint64{1}, stored: 4, failed: 2, want: "got 3 events"},
	} {
		t.Run(name, func(t *testing.T) {
			l := New(2)
			for _, n := range tt.numbers {
				if err := l.Acknowledge(1, n); err != nil {
					t.Fatal(err)
				}
			}
			err := l.Check([]uint64{0, tt.stored}, tt.failed)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if got := l.Count(); got != uint64(len(tt.numbers)) {
				t.Errorf("count: got %d, want %d", got, len(tt.numbers))
			}
		})
	}
}

func TestTwice(t *testing.T) {
	l := New(1)
	if err := l.Acknowledge(0, 7); err != nil {
		t.Fatal(err)
	}
	if err := l.Acknowledge(0, 7); err == nil {
		t.Error("a number twice: got no error")
	}
}

func TestWrongNumbers(t *testing.T) {
	l := New(1)
	for _, err := range []error{l.Acknowledge(0, 0), l.Acknowledge(1, 1), l.Acknowledge(-1, 1), l.Acknowledge(0, 1<<40), l.Check(nil, 0)} {
		if err == nil {
			t.Error("got no error")
		}
	}
}

func TestConcurrent(t *testing.T) {
	l := New(1)
	var callers sync.WaitGroup
	for c := range uint64(8) {
		callers.Go(func() {
			for i := range uint64(1000) {
				if err := l.Acknowledge(0, i*8+c+1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	if err := l.Check([]uint64{8000}, 0); err != nil {
		t.Error(err)
	}
}

func TestNumbers(t *testing.T) {
	var n Numbers
	for _, number := range []uint64{1, 64, 65, 200} {
		if added, err := n.Add(number); !added || err != nil {
			t.Errorf("%d: got %v, %v, want that it is new", number, added, err)
		}
	}
	if added, err := n.Add(64); added || err != nil {
		t.Errorf("64 again: got %v, %v, want that it is not new", added, err)
	}
	for number, want := range map[uint64]bool{0: false, 1: true, 2: false, 63: false, 64: true, 65: true, 200: true, 201: false, 1000: false} {
		if got := n.Has(number); got != want {
			t.Errorf("%d: got %v, want %v", number, got, want)
		}
	}
	if n.Count() != 4 {
		t.Errorf("got %d numbers, want 4", n.Count())
	}
}
