package messages_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/partita-go/partita/messages"
)

// FuzzParse: text is an id, number or offset, which reads the same when it is printed
// and parsed again, or an ErrSyntax.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "0", "1", "65535", "65536", "4294967296", "18446744073709551615", "18446744073709551616", "-1", "+1", "0x1", "1_0", " 1", "٣"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		reparse(t, text, messages.ParsePartitionID)
		reparse(t, text, messages.ParseWSID)
		reparse(t, text, messages.ParseSeqID)
		reparse(t, text, messages.ParseNumber)
		reparse(t, text, messages.ParsePLogOffset)
		reparse(t, text, messages.ParseWLogOffset)
	})
}

func reparse[T interface {
	comparable
	fmt.Stringer
}](t *testing.T, text string, parse func(string) (T, error)) {
	t.Helper()
	id, err := parse(text)
	if err != nil {
		if !errors.Is(err, messages.ErrSyntax) {
			t.Errorf("%T: %q: got %v, want ErrSyntax", id, text, err)
		}
		return
	}
	if again, err := parse(id.String()); err != nil || again != id {
		t.Errorf("%T: %q: got %v, %v, want %v", id, text, again, err, id)
	}
}
