package ids_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"testing"

	"github.com/partita-go/partita/ids"
)

// FuzzParseIDs: text is an id that reads the same when it is printed, or an ErrID; and JSON and the methods for text agree
// with the parser.
func FuzzParseIDs(f *testing.F) {
	for _, text := range []string{
		"", "0", "0000000000000001", "7fffffffffffffff", "8000000000000001", "0000000000000400", "0123456789ABCDEF",
		"420001700003", "10000100000", "9223372029999999999", "9223372036854775807", "010000100000", "+10000100000", "\"", "\xff",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		reparse(t, text, ids.ParseTraceID)
		reparse(t, text, ids.ParseDecimalID)
	})
}

func reparse[T interface {
	~uint64
	String() string
	Validate() error
	encoding.TextMarshaler
}](t *testing.T, text string, parse func(string) (T, error)) {
	t.Helper()
	id, err := parse(text)
	var read T
	quoted, _ := json.Marshal(text)
	readErr := json.Unmarshal(quoted, &read)
	if err != nil {
		if !errors.Is(err, ids.ErrID) || id != 0 {
			t.Errorf("%T: %q: got %v, %v, want ErrID", id, text, id, err)
		}
		if (readErr != nil || read != 0) != (text != "") && json.Valid(quoted) {
			t.Errorf("%T: %q: got %v, %v from JSON, want an error for all but the empty text", id, text, read, readErr)
		}
		return
	}
	if id.String() != text || id.Validate() != nil || id == 0 || id>>63 != 0 {
		t.Errorf("%T: %q: got %v, %v, want an id with this text", id, text, id, id.Validate())
	}
	if written, err := id.MarshalText(); err != nil || string(written) != text {
		t.Errorf("%T: %q: got %s, %v", id, text, written, err)
	}
	if readErr != nil || read != id {
		t.Errorf("%T: %q: got %v, %v from JSON, want %v", id, text, read, readErr, id)
	}
}
