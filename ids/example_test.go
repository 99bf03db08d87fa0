package ids_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/ids"
)

// A program makes one generator at its start, with a node number that no other program has at that time.
func Example_traces() {
	ctx := context.Background()
	traces := ids.NewTraceGenerator(7, ids.TraceOptions{}) // no id is of this second: the first one waits for the next

	first, err := traces.Next(ctx)
	check(err)
	second, err := traces.Next(ctx)
	check(err)
	fmt.Println(first.Node(), first.Compare(second), len(first.String()))
	// Output:
	// 7 -1 16
}

// An id that comes from outside is checked before it is believed.
func ExampleTraceID_ValidateAt() {
	now := time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{"7245088001c00401", "7245088001c00400", "71f0a88001c00401"} {
		id, err := ids.ParseTraceID(text)
		if err == nil {
			err = id.ValidateAt(now, time.Hour)
		}
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// not an id: trace id: got "7245088001c00400", want 16 hexadecimal digits in lower case, a top bit of 0 and a counter of 1 to 1023
	// time of the trace id is too far from now: trace id 71f0a88001c00401: got 24h0m30s from 2026-03-29T12:00:00Z, want at most 1h0m0s
}

// In JSON an id is a string. No id is the empty string, or is left out.
func ExampleTraceID_MarshalText() {
	type event struct {
		Trace  ids.TraceID   `json:"trace"`
		Object ids.DecimalID `json:"object,omitzero"`
	}
	written, err := json.Marshal([]event{{Trace: 0x1aaf3400401, Object: 420001700003}, {}})
	check(err)
	fmt.Println(string(written))
	// Output:
	// [{"trace":"000001aaf3400401","object":"420001700003"},{"trace":""}]
}

// Both kinds of ids are fields of structured logs.
func ExampleTraceID_LogValue() {
	trace := ids.TraceID(0x1aaf3400401)
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime})).Info("paid", "trace", trace)
	zap.NewExample().Info("paid", zap.Stringer("trace", trace))
	// Output:
	// level=INFO msg=paid trace=000001aaf3400401
	// {"level":"info","msg":"paid","trace":"000001aaf3400401"}
}

// Ids with a key go out, and come back as they were.
func ExamplePermutation() {
	key := [16]byte([]byte("0123456789abcdef")) // of the deployment; it never changes
	p, err := ids.NewPermutation(key, 53)       // numbers that ECMAScript has
	check(err)
	for n := uint64(1); n <= 3; n++ {
		out := p.Scatter(n)
		fmt.Println(n, out, p.Gather(out))
	}
	// Output:
	// 1 4991978533403793 1
	// 2 3655540233194928 2
	// 3 6015171534930460 3
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
