package event

import (
	"bytes"
	"testing"
)

func TestPartsMakeTheWhole(t *testing.T) {
	s := NewSource(3, 10)
	s.Next()
	got := bytes.Join([][]byte{s.Value()[:HeaderSize], s.Body(), s.Record(0), s.Record(1)}, nil)
	if !bytes.Equal(got, s.Value()) {
		t.Errorf("header, body and records: got %d bytes, want the %d of the value", len(got), len(s.Value()))
	}
	if len(s.Body()) != 300 || len(s.Record(1)) != 100 || len(s.Message()) != 500 {
		t.Errorf("got body %d, record %d, message %d, want 300, 100, 500", len(s.Body()), len(s.Record(1)), len(s.Message()))
	}
}

func TestNextVaries(t *testing.T) {
	s := NewSource(0, 10)
	seen := make(map[string]bool)
	workspaces := make(map[int]bool)
	for range 1000 {
		workspaces[s.Next()] = true
		seen[string(s.Body())] = true
	}
	if len(seen) != 1000 {
		t.Errorf("got %d different bodies, want 1000", len(seen))
	}
	for w := range workspaces {
		if w < 0 || w >= 10 {
			t.Errorf("got workspace %d, want 0 to 9", w)
		}
	}
	if len(workspaces) != 10 {
		t.Errorf("got %d workspaces, want 10", len(workspaces))
	}
}

func TestMadeBy(t *testing.T) {
	s := NewSource(3, 10)
	for want := range uint64(3) {
		s.Next()
		if caller, number, err := MadeBy(s.Body()); caller != 3 || number != want+1 || err != nil {
			t.Errorf("got event %d of caller %d, %v, want %d of 3", number, caller, err, want+1)
		}
	}
	if _, _, err := MadeBy(s.Body()[1:]); err == nil {
		t.Error("a part of a body: got no error")
	}
}
