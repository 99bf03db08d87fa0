package operate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/cmd/partita/internal/serve"
)

// tokenVariable is the environment's variable with the token. A flag would show it to everybody who can list processes.
const tokenVariable = "PARTITA_TOKEN"

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "serve {--db DIR | --config FILE}", Short: "Run the application of a store, and serve it over HTTP",
		Long: `Run the application of a store, and serve it over HTTP until an interrupt. All
but loopback addresses need a certificate and a token. The API is at /v1; what
Prometheus wants to know is at /metrics.
The store is as it was made. With --descriptor FILE it is what the file says:
kinds and sequences are added to it, what cannot change is refused. A new store
is made with --create only. partita init writes the files.
With --config FILE it takes settings from the file: see partita config. With
--dump FILE it writes messages of its actors to the file, which partita dumps
reads. SIGHUP never ends the server: it reads the settings that can change while
it runs, the certificate and the file of the token again, and opens the dump
anew.
With --node NAME and --peers it is one node of several. Each has a copy of the
store, in shard-0 below --db, and takes all requests. With --shards N several
nodes take appends, each those of its shards: see docs/cluster.md.`,
	}
	file := serveFlags(c.Flags())
	create := c.Flags().Bool("create", false, "make a new store of the descriptor if there is none; it is no setting, so that no start does so unasked")
	join := c.Flags().Bool("join", false, "make a new node's store of that of the node that leads, if there is none; then partita cluster add")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		hangups, stop := listen()
		defer stop()
		source := config.NewSource(*file, os.Getenv, c.Flags())
		loaded, err := loadConfig(source)
		if err != nil {
			return err
		}
		if loaded.Config.DB == "" {
			return cli.WrongUsage("--db is missing")
		}
		served := serve.ConfigOf(loaded, source)
		served.Hangups = hangups
		if served.Create = *create; *create && served.Descriptor == "" {
			return cli.WrongUsage("--create goes with a descriptor: want --descriptor FILE, or descriptor in the configuration (partita init writes both)")
		}
		if served.Node.Join = *join; *join && (*create || served.Node.Name == "") {
			return cli.WrongUsage("--join is for a node of several, without --create")
		}
		served.Operations = operationsOf
		var told error
		err = serve.Run(ctx, served, s.Err, func(url, application string) {
			result := &serveResult{Command: "serve", Store: served.Dir, Application: application, URL: url}
			told = console.New(s, *asJSON).Result(result, result.text)
		})
		if errors.Is(err, serve.ErrConfig) {
			return cli.WrongUsage("%v", err)
		}
		err = held(ctx, served.StoreDir(), errors.Join(told, differs(served.Descriptor, served.StoreDir(), err)), "One server serves a store: nothing was started")
		if err != nil && ctx.Err() != nil {
			// That it was interrupted is all that the last line says.
			_, _ = fmt.Fprintf(s.Err, "partita: serve: %s\n", cli.OneLine(err))
		}
		return err
	})
	return c
}

// loadConfig loads a configuration: a wrong one is wrong usage.
func loadConfig(source *config.Source) (*config.Loaded, error) {
	loaded, err := source.Load()
	if errors.Is(err, config.ErrConfig) {
		return nil, cli.WrongUsage("%v", err)
	}
	return loaded, err
}

// readToken returns the token of a file or of the environment, "" if there is none.
func readToken(file string) (string, error) {
	if file == "" {
		return os.Getenv(tokenVariable), nil
	}
	return serve.ReadToken(file)
}

// serveResult says what is served and where, in the words of its JSON.
type serveResult struct {
	Command     string `json:"command"`
	Store       string `json:"store"`
	Application string `json:"application"`
	URL         string `json:"url"`
}

func (r *serveResult) text(c *console.Console) {
	c.Say("application %q of %s is served at %s until an interrupt (SIGINT, SIGTERM)", r.Application, r.Store, r.URL)
}
