package numbers

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// What is given for a number that does not change is the stored one, or what the log says.
func TestAgrees(t *testing.T) {
	const testSeq, stored = messages.SeqID(16), messages.Number(9)
	for _, tt := range []struct {
		seq  messages.SeqID
		got  messages.Number
		want bool
	}{
		{testSeq, 0, true}, {testSeq, 9, true}, {testSeq, 5, true}, {testSeq, 4, false}, {testSeq, 8, false},
		{format.KindSeq, 0, true}, {format.KindSeq, 9, true}, {format.KindSeq, 5, false},
	} {
		if got := (Put{1, messages.SequenceNumber{Seq: tt.seq, Number: 5}}).agrees(tt.got, stored, stored); got != tt.want {
			t.Errorf("sequence %d: %d given, 5 in the log, 9 stored: got %v, want %v", tt.seq, tt.got, got, tt.want)
		}
	}
}
