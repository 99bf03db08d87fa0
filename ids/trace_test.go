package ids_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"pgregory.net/rapid"

	"github.com/partita-go/partita/ids"
)

// traceID puts an id together from its parts.
func traceID(second uint64, node, chunk, counter uint64) ids.TraceID {
	return ids.TraceID(second<<38 | node<<22 | chunk<<10 | counter)
}

func anyTraceID() *rapid.Generator[ids.TraceID] {
	return rapid.Custom(func(t *rapid.T) ids.TraceID {
		return traceID(rapid.Uint64Range(0, 1<<25-1).Draw(t, "second"), uint64(rapid.Uint16().Draw(t, "node")),
			rapid.Uint64Range(0, 4095).Draw(t, "chunk"), rapid.Uint64Range(1, 1023).Draw(t, "counter"))
	})
}

func TestTraceIDHasItsLayout(t *testing.T) {
	clock := newClock(3<<25 + 5)
	g := ids.NewTraceGenerator(0xabcd, ids.TraceOptions{Clock: clock})
	clock.pass(time.Second)
	id := next(t, g)
	if want := traceID(6, 0xabcd, 0, 1); id != want {
		t.Errorf("got %v, want %v", id, want)
	}
	for range 1023 {
		id = next(t, g)
	}
	if want := traceID(6, 0xabcd, 1, 1); id != want {
		t.Errorf("after a chunk: got %v, want %v", id, want)
	}
	if got := id.Node(); got != 0xabcd {
		t.Errorf("got node %x, want abcd", got)
	}
	if got, want := id.Time(clock.Now()), time.Unix(3<<25+6, 0).UTC(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := id.String(), "000001aaf3400401"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseTraceID(t *testing.T) {
	for _, text := range []string{"0000000000000001", "7fffffffffffffff", "0123456789abcdef"} {
		if id, err := ids.ParseTraceID(text); err != nil || id.String() != text {
			t.Errorf("%s: got %v, %v", text, id, err)
		}
	}
	for _, text := range []string{
		"", "0", "1", "0000000000000000", "0000000000000400", "8000000000000001", "ffffffffffffffff", "0123456789ABCDEF",
		"00000000000000001", "+000000000000001", "-000000000000001", "0x00000000000001", " 000000000000001", "00000000000000_1",
	} {
		if id, err := ids.ParseTraceID(text); !errors.Is(err, ids.ErrID) || id != 0 {
			t.Errorf("%q: got %v, %v, want ErrID", text, id, err)
		}
	}
}

func TestValidateTraceID(t *testing.T) {
	for id, ok := range map[ids.TraceID]bool{1: true, 1<<63 - 1: true, 1024 + 1023: true, 0: false, 1024: false, 1<<63 | 1: false} {
		if err := id.Validate(); (err == nil) != ok || err != nil && !errors.Is(err, ids.ErrID) {
			t.Errorf("%x: got %v", uint64(id), err)
		}
	}
}

// The age is judged to the second, and across the end of a period.
func TestValidateTraceIDByAge(t *testing.T) {
	for _, unix := range []int64{5 << 25, 5<<25 + 3, 6<<25 - 1, 1_800_000_000} {
		now := time.Unix(unix, 999_999_999)
		for off, ok := range map[int64]bool{0: true, 10: true, -10: true, 11: false, -11: false, 1 << 24: false, -1<<24 + 1: false} {
			id := traceID(uint64(unix+off)%(1<<25), 1, 2, 3)
			err := id.ValidateAt(now, 10*time.Second)
			if (err == nil) != ok || err != nil && !errors.Is(err, ids.ErrTooFar) {
				t.Errorf("%d s from %v: got %v", off, now, err)
			}
			if err := id.ValidateAt(now, ids.TracePeriod/2); err != nil {
				t.Errorf("%d s from %v, any time allowed: got %v", off, now, err)
			}
		}
	}
	if err := ids.TraceID(0).ValidateAt(time.Now(), ids.TracePeriod); !errors.Is(err, ids.ErrID) {
		t.Errorf("got %v, want ErrID", err)
	}
}

// Within half a period ids are in the order of their times, whatever their numbers.
func TestTraceIDsAreInTheOrderOfTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Int64Range(1<<26, 1<<33).Draw(t, "now")
		later := now + rapid.Int64Range(0, 1<<24-1).Draw(t, "seconds later")
		a, b := anyTraceID().Draw(t, "a"), anyTraceID().Draw(t, "b")
		a, b = in(a, now), in(b, later)
		want := cmp.Or(cmp.Compare(now, later), cmp.Compare(a&(1<<38-1), b&(1<<38-1)))
		if a.Compare(b) != want || b.Compare(a) != -want {
			t.Errorf("got %d and %d, want %d", a.Compare(b), b.Compare(a), want)
		}
		if got := a.Time(time.Unix(later, 0)).Unix(); got != now {
			t.Errorf("got second %d, want %d", got, now)
		}
		if got := b.Time(time.Unix(now, 0)).Unix(); got != later {
			t.Errorf("got second %d, want %d", got, later)
		}
	})
}

// in returns an id with the second of a time.
func in(id ids.TraceID, unix int64) ids.TraceID {
	return id&(1<<38-1) | ids.TraceID(unix%(1<<25))<<38
}

// What an id is as text or in JSON is read as the same id, and text sorts as numbers do.
func TestTraceIDAsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyTraceID().Draw(t, "a"), anyTraceID().Draw(t, "b")
		if got, err := ids.ParseTraceID(a.String()); err != nil || got != a {
			t.Errorf("got %v, %v, want %v", got, err, a)
		}
		if got, want := strings.Compare(a.String(), b.String()), cmp.Compare(a, b); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
		throughJSON(t, a)
	})
}

// throughJSON makes sure that a value is a string in JSON, and comes back.
func throughJSON[T interface {
	comparable
	String() string
}](t rapid.TB, id T) {
	t.Helper()
	type document struct{ ID T }
	written, err := json.Marshal(document{ID: id})
	if want := `{"ID":"` + id.String() + `"}`; err != nil || string(written) != want {
		t.Fatalf("got %s, %v, want %s", written, err, want)
	}
	var read document
	if err := json.Unmarshal(written, &read); err != nil || read.ID != id {
		t.Errorf("%s: got %v, %v, want %v", written, read.ID, err, id)
	}
}

// No id is the empty text. What is no id is an error, and changes nothing.
func TestZeroAndBadTexts(t *testing.T) {
	throughJSON(t, ids.TraceID(0))
	throughJSON(t, ids.DecimalID(0))
	for _, bad := range []any{ids.TraceID(1 << 63), ids.TraceID(1024), ids.DecimalID(1), ids.DecimalID(1<<64 - 1)} {
		if written, err := json.Marshal(bad); !errors.Is(err, ids.ErrID) {
			t.Errorf("%#v: got %s, %v, want ErrID", bad, written, err)
		}
	}
	trace, decimal := ids.TraceID(1), ids.DecimalID(10000100001)
	for _, document := range []string{`"1"`, `"+0000100001"`, `" "`} {
		for _, into := range []any{&trace, &decimal} {
			if err := json.Unmarshal([]byte(document), into); !errors.Is(err, ids.ErrID) {
				t.Errorf("%s: got %v, want ErrID", document, err)
			}
		}
	}
	for _, document := range []string{`1`, `10000100001`, `true`, `{}`} {
		if json.Unmarshal([]byte(document), &trace) == nil || json.Unmarshal([]byte(document), &decimal) == nil {
			t.Errorf("%s: got no error, want a string to be asked for", document)
		}
	}
	if trace != 1 || decimal != 10000100001 {
		t.Errorf("got %v and %v, want what they were", trace, decimal)
	}
}

// Both ids are fields of structured logs, as text.
func TestIDsInLogs(t *testing.T) {
	trace, decimal := ids.TraceID(0x1aaf3400401), ids.DecimalID(420001700003)
	const want = `{"trace":"000001aaf3400401","object":"420001700003"}`
	var out bytes.Buffer
	noHead := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}
	slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: noHead})).Info("", "trace", trace, "object", decimal)
	if got := strings.TrimSpace(out.String()); got != want {
		t.Errorf("log/slog: got %s, want %s", got, want)
	}
	for how, fields := range map[string][]zap.Field{
		"zap.Stringer": {zap.Stringer("trace", trace), zap.Stringer("object", decimal)},
		"zap.Any":      {zap.Any("trace", trace), zap.Any("object", decimal)},
	} {
		line, err := zapcore.NewJSONEncoder(zapcore.EncoderConfig{}).EncodeEntry(zapcore.Entry{}, fields)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(line.String()); got != want {
			t.Errorf("%s: got %s, want %s", how, got, want)
		}
	}
}
