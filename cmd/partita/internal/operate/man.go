package operate

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
)

func manCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "man --to DIR", Short: "Write manual pages",
		Long: `Write a manual page of the program, and one of each command, into a directory
that is there, as /usr/local/share/man/man1. They say what the help says.`,
	}
	to := cli.Required(c, "to", "the directory, `DIR`")
	c.RunE = cli.Run(func(_ context.Context, s cli.Streams) error {
		names, err := tool().WriteMan(*to)
		if err != nil {
			return err
		}
		return console.New(s, false).Result(nil, func(c *console.Console) { c.Say("%d pages are in %s", len(names), *to) })
	})
	return c
}
