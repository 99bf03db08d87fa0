package table

import (
	"math"
	"testing"
	"time"

	"github.com/partita-go/partita/cmd/internal/human"
)

func example() *Table {
	t := New(Left("repository"), Right("commits"), Right("p99"), Right("size"), Bar("share", 8))
	t.Row("apache/pekko", 16468, 1600*time.Microsecond, human.Bytes(1<<20), 16468)
	t.Row("é", int64(9637), 2*time.Second, human.Bytes(12), 9637)
	t.Row("one", uint64(1), nil, "?", 1, "too many")
	t.Rule()
	t.Row("all", 1.5)
	return t
}

func TestTable(t *testing.T) {
	want := `
 repository    commits     p99      size  share
───────────────────────────────────────────────────
 apache/pekko   16,468  1.60ms  1.00 MiB  ████████
 é               9,637   2.00s      12 B  ████▋
 one                 1                 ?  ▏
───────────────────────────────────────────────────
 all              1.50
`
	if got := "\n" + example().String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
}

func TestOddBars(t *testing.T) {
	table := New(Bar("b", 4), Left("x"))
	for _, value := range []any{0, -3, math.NaN(), math.Inf(1), 2.0, 4.0, time.Duration(1), "n/a", nil} {
		table.Row(value, "|")
	}
	want := `
 b     x
─────────
       |
       |
       |
 ████  |
 ██    |
 ████  |
 █     |
 n/a   |
       |
`
	if got := "\n" + table.String(); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}
}

func TestNoRows(t *testing.T) {
	if got, want := New(Left("a"), Right("b")).String(), " a  b\n──────\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
