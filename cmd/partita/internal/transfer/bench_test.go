package transfer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// usual is an event as most are: some hundred bytes.
func usual() messages.Event {
	return messages.Event{
		Kind: messages.EventBusiness, Epoch: 1, Workspace: 7, WorkspaceKind: 1, WLogOffset: 12345, RegisteredAt: 1_700_000_000_123_456,
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

// transferred is how many events the store of the benchmarks has.
const transferred = 200_000

// many makes usual events of 10,000 workspaces.
func many(yield func(messages.Event, error) bool) {
	for i := range transferred {
		e := usual()
		n := messages.Number(i/10_000 + 1)
		e.Workspace, e.WLogOffset, e.RegisteredAt = messages.WSID(i%10_000), messages.WLogOffset(n), messages.Timestamp(1_700_000_000_000_000+i)
		e.DedupID = messages.DedupID{byte(n), 1}
		e.Numbers[0].Number, e.Records[0].ID.Number = n, n
		if !yield(e, nil) {
			return
		}
	}
}

// benchStore makes the store, and its export.
func benchStore(b *testing.B) (s *bolt.Store, text []byte) {
	b.Helper()
	d := messages.Descriptor{Application: "shops", Partitions: 4, Kinds: []messages.Kind{
		{ID: 1, Name: "shop", Sequences: []messages.Sequence{{ID: 16, Name: "Invoice", Initial: 1}}},
	}}
	dir := filepath.Join(b.TempDir(), "store")
	_, err := bolt.Import(b.Context(), dir, d, many, bolt.ImportOptions{})
	if err == nil {
		s, err = bolt.OpenExisting(b.Context(), dir, bolt.Options{ReadOnly: true})
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close(context.Background()) })
	var out bytes.Buffer
	if _, err := Export(b.Context(), s, bolt.Part{}, &out, func(_, _ uint64) {}); err != nil {
		b.Fatal(err)
	}
	return s, out.Bytes()
}

func perSecond(b *testing.B) {
	b.ReportMetric(float64(transferred)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkExport(b *testing.B) {
	s, text := benchStore(b)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Export(b.Context(), s, bolt.Part{}, io.Discard, func(_, _ uint64) {}); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}

// BenchmarkImport imports, and verifies.
func BenchmarkImport(b *testing.B) {
	_, text := benchStore(b)
	b.SetBytes(int64(len(text)))
	for i := 0; b.Loop(); i++ {
		r, err := NewReader(bytes.NewReader(text))
		if err == nil {
			_, err = Import(b.Context(), r, filepath.Join(b.TempDir(), fmt.Sprint(i)), ImportOptions{})
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b)
}
