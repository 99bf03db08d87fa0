package transfer

import (
	"fmt"
	"testing"

	"github.com/partita-go/partita/messages"
)

// usual is an event as most are: some hundred bytes.
func usual() messages.Event {
	return messages.Event{
		Kind: messages.EventBusiness, Workspace: 7, WorkspaceKind: 1, WLogOffset: 12345, RegisteredAt: 1_700_000_000_123_456,
		Numbers: []messages.SequenceNumber{{Seq: 16, Number: 12345}}, DedupID: messages.DedupID{1, 2, 3},
		Body:    fmt.Appendf(nil, `{"invoice":%d,"text":"%0100d"}`, 12345, 1),
		Records: []messages.Record{{ID: messages.RecordID{Seq: 16, Number: 12345}, New: true, Data: fmt.Appendf(nil, `{"row":%d,"text":"%030d"}`, 1, 2)}},
	}
}

func BenchmarkWriteEvent(b *testing.B) {
	e, w := usual(), newWriter()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.event(&e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadEvent(b *testing.B) {
	e, w := usual(), newWriter()
	text, err := newWriter().event(&e)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.readEvent(text); err != nil {
			b.Fatal(err)
		}
	}
}
