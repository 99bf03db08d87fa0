package messages_test

import (
	"testing"
	"unsafe"

	"github.com/partita-go/partita/messages"
)

// The estimate is no less than what Go takes for the structs, nor twice as much.
func TestEventMemory(t *testing.T) {
	var e messages.Event
	for name, c := range map[string]struct {
		event messages.Event
		more  uintptr
	}{
		"nothing":  {e, unsafe.Sizeof(e)},
		"body":     {messages.Event{Body: make([]byte, 1000)}, unsafe.Sizeof(e) + 1000},
		"numbers":  {messages.Event{Numbers: make([]messages.SequenceNumber, 1000)}, unsafe.Sizeof(e) + 1000*unsafe.Sizeof(messages.SequenceNumber{})},
		"moves":    {messages.Event{Moves: make([]messages.SequenceNumber, 1000)}, unsafe.Sizeof(e) + 1000*unsafe.Sizeof(messages.SequenceNumber{})},
		"records":  {messages.Event{Records: make([]messages.Record, 1000)}, unsafe.Sizeof(e) + 1000*unsafe.Sizeof(messages.Record{})},
		"data":     {messages.Event{Records: []messages.Record{{Data: make([]byte, 1000)}}}, unsafe.Sizeof(e) + unsafe.Sizeof(messages.Record{}) + 1000},
		"sections": {messages.Event{Sections: make([]messages.Section, 1000)}, unsafe.Sizeof(e) + 1000*unsafe.Sizeof(messages.Section{})},
		"content":  {messages.Event{Sections: []messages.Section{{Data: make([]byte, 1000)}}}, unsafe.Sizeof(e) + unsafe.Sizeof(messages.Section{}) + 1000},
	} {
		if got := c.event.Memory(); got < int(c.more) || got > 2*int(c.more) {
			t.Errorf("%s: got %d, want %d or a little more", name, got, c.more)
		}
	}
}
