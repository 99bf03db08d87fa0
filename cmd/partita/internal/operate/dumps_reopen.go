package operate

import (
	"context"
	"errors"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/partita/internal/serve"
)

func dumpsReopenCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "reopen " + sourceUse, Short: "Let a server open its dump anew, after the file was moved away",
		Long: `Let a server open the file of its dump anew by its name, as SIGHUP does, after
the file was moved away. The settings stay as they are.`,
	}
	from := sourceFlags(c)
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		server, err := from.server(ctx)
		if err != nil {
			return err
		}
		if server == nil {
			return errors.New(from.name() + ": no server has the store open")
		}
		defer func() { err = errors.Join(err, server.close()) }()
		result := &reopenResult{Command: "dumps", Verb: "reopen", Store: from.name()}
		if err := server.ask(ctx, http.MethodPost, server.operation(serve.ReopenDump, nil), []byte("{}"), &result.Reopened); err != nil {
			return err
		}
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

// reopenResult says what was opened anew, in the words of its JSON.
type reopenResult struct {
	Command string `json:"command"`
	Verb    string `json:"verb"`
	Store   string `json:"store"`
	serve.Reopened
}

func (r *reopenResult) text(c *console.Console) { c.Say("%s: opened anew", r.File) }
