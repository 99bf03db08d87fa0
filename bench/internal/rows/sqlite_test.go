//go:build cgo && !nopeers

package rows

import (
	"testing"

	"github.com/partita-go/partita/bench/internal/measure"
)

// sqliteOf returns a row with some events in it.
func sqliteOf(t *testing.T) *sqlite {
	t.Helper()
	row, ok := newSQLite(measure.Settings{Callers: 4, Workspaces: 3}).(*sqlite)
	if !ok {
		t.Fatal("got no sqlite")
	}
	t.Cleanup(func() {
		if err := row.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err := row.Setup(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	doAll(t, row, 4, 10)
	return row
}

func TestSQLite(t *testing.T) {
	row := sqliteOf(t)
	if err := row.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if text, err := row.Check(t.Context(), 0); err != nil || text == "" {
		t.Errorf("got %q, %v", text, err)
	}
	if n := row.ledger.Count(); n != 40 {
		t.Errorf("got %d acknowledged, want 40", n)
	}
}

// The check is the same for every SQL row.
func TestCheckCountersFindsFaults(t *testing.T) {
	for name, damage := range map[string]string{
		"an event is lost":             "delete from events where workspace = 1 and wlog_offset = 1",
		"an event is too many":         "insert into events values (1, 1000, zeroblob(300))",
		"a record is lost":             "delete from records where workspace = 1 and sequence = 2 and number = 1",
		"a record is of no sequence":   "insert into records values (1, 3, 1, zeroblob(100))",
		"a body is short":              "update events set body = zeroblob(299) where workspace = 1 and wlog_offset = 1",
		"a counter is too high":        "update counters set number1 = number1 + 1 where workspace = 1",
		"all of the last event is off": "delete from events where workspace = 1 and wlog_offset = (select wlog_offset from counters where workspace = 1); delete from records where workspace = 1 and number = (select number1 from counters where workspace = 1); update counters set wlog_offset = wlog_offset - 1, number1 = number1 - 1, number2 = number2 - 1 where workspace = 1",
		"a workspace is lost":          "delete from counters where workspace = 1",
	} {
		t.Run(name, func(t *testing.T) {
			row := sqliteOf(t)
			if _, err := row.conn.ExecContext(t.Context(), damage); err != nil {
				t.Fatal(err)
			}
			if text, err := row.Check(t.Context(), 0); err == nil {
				t.Errorf("got %q, want an error", text)
			}
		})
	}
}
