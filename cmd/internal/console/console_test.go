package console

import (
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/table"
)

// TestPlain: what comes from a store cannot steer the terminal.
func TestPlain(t *testing.T) {
	const evil = "a\x1b[2J\u202eb"
	var out strings.Builder
	c := New(cli.Streams{Out: &out}, false)
	c.Say("\nsaid %s, %v, %d", evil, errors.New(evil), 7)
	c.Tell("", "told %s", evil)
	tab := table.New(table.Left("name"))
	tab.Row(evil)
	c.Draw("Table", tab)
	text := out.String()
	if strings.ContainsAny(text, "\x1b\u202e") || strings.Count(text, "a?[2J?b") != 4 || !strings.HasPrefix(text, "\nsaid ") || !strings.Contains(text, ", 7\n") {
		t.Errorf("got %q", text)
	}
}
