package plot

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// soaked are the samples of a soak over some stores.
func soaked(t *testing.T, stores int) string {
	t.Helper()
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for store := range stores {
		for i := range 20 {
			at := float64(store*25+i) * 10
			latency := soakLatency{Count: 100, P50: 1000, P99: 20_000, P999: 300_000}
			s := soakSample{Seconds: at, Store: store, Events: 5000, Appends: latency, Transactions: latency, Live: 64 << 20, Anonymous: 128 << 20, Goroutines: 400}
			if i == 7 {
				s.Events, s.Appends, s.Transactions = 0, soakLatency{}, soakLatency{} // nothing ended meanwhile
			}
			if s.Rest = i == 19; s.Rest {
				s.Live, s.Goroutines = 16<<20, 2
			}
			if err := encoder.Encode(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	return lines.String()
}

func TestSoakPicture(t *testing.T) {
	var out bytes.Buffer
	if err := WriteSoak(&out, strings.NewReader(soaked(t, 3))); err != nil {
		t.Fatal(err)
	}
	found := texts(t, out.String())
	for _, want := range []string{
		"Latency of appends", "Latency of transactions", "Throughput", "Memory", "Goroutines", "minutes",
		"p50 1", "p99 20", "p99.9 300", "events 5,000", "heap 64", "at rest 16", "anonymous 128", "under load 400", "at rest 2",
	} {
		if !slices.Contains(found, want) {
			t.Errorf("got no %q in %q", want, found)
		}
	}
}

func TestSoakWithoutSamples(t *testing.T) {
	for name, lines := range map[string]string{"nothing": "", "no JSON": "x", "nothing but zeroes": `{"seconds":10}`} {
		if err := WriteSoak(io.Discard, strings.NewReader(lines)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 0.5: "0.5", 0.034: "0.034", 2.26: "2.3", 20: "20", 99: "99", 437: "437", 68_730: "68,700"} {
		if got := short(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}
