package httpapi

import (
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestOwnNames: a sequence of the kind that has the name of a built-in one is meant by it; of two of the kind none is.
func TestOwnNames(t *testing.T) {
	names := namesOf(&messages.Kind{Sequences: []messages.Sequence{{ID: 16, Name: "WLogOffset"}, {ID: 17, Name: "x"}, {ID: 18, Name: "x"}}})
	for name, want := range map[string]named{
		"WLogOffset": {id: 16}, "CRecordID": {id: messages.SeqCRecordID}, "x": {18, true}, "y": {},
	} {
		if names[name] != want {
			t.Errorf("%s: got %+v, want %+v", name, names[name], want)
		}
	}
}
