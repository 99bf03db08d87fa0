package messages_test

import (
	"math"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

func TestTimestampOf(t *testing.T) {
	for _, test := range []struct {
		name string
		time time.Time
		want messages.Timestamp
	}{
		{"no time", time.Time{}, 0},
		{"a microsecond", time.Unix(0, 1000), 1},
		{"before 1970", time.Unix(-1, 0), -1_000_000},
		{"the year 9999", time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), 253402214400_000_000},
		{"the last that fits", time.Unix(math.MaxInt64/1_000_000-1, 999_999_000), (math.MaxInt64/1_000_000)*1_000_000 - 1},
		{"too late", time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC), math.MaxInt64},
		{"far too late", time.Unix(1<<62, 0), math.MaxInt64},
		{"too early", time.Date(-300_000, 1, 1, 0, 0, 0, 0, time.UTC), math.MinInt64},
	} {
		if got := messages.TimestampOf(test.time); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}
