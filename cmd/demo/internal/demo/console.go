package demo

import (
	"github.com/partita-go/partita/cmd/internal/cli"
	shared "github.com/partita-go/partita/cmd/internal/console"
)

// console is where a command tells what it does.
type console struct{ *shared.Console }

func newConsole(s cli.Streams, asJSON bool) *console {
	return &console{Console: shared.NewShow(s, asJSON)}
}

// result ends a command with its result.
func (c *console) result(value any, text func(*console)) error {
	return c.Result(value, func(*shared.Console) { text(c) })
}

// The numbers of the results, as JSON.
type (
	number  = shared.Number
	seconds = shared.Seconds
)
