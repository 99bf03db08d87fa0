package operate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/table"
	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/cmd/partita/internal/serve"
)

// configCommand is the command about the configuration of serve.
func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "config VERB", Short: "Show, check and change the configuration of serve",
		Long: `Show, check and change the configuration of partita serve. A setting has its
value from a flag, else from a variable of the environment, else from the file,
else its default. A server reads its file again at SIGHUP.`,
	}
	c.AddCommand(configShowCommand(), configCheckCommand(), configApplyCommand())
	return c
}

func configShowCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "show [flags of serve | --url URL]", Short: "Show the value of each setting, and where it comes from",
		Long: `Show the value of each setting that serve would have with these flags, this file
and this environment, and where it comes from; with --url those of a server that
runs. Of groups of actors those are shown that somebody has given.`,
	}
	file := serveFlags(c.Flags())
	url := c.Flags().String("url", "", "the `URL` of a server that runs")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		result := &configResult{Command: "config", Verb: "show"}
		if *url == "" {
			loaded, err := loadConfig(config.NewSource(*file, os.Getenv, c.Flags()))
			if err != nil {
				return err
			}
			result.Settings = loaded.Settings()
			return console.New(s, *asJSON).Result(result, result.text)
		}
		result.URL = *url
		if err := askConfig(ctx, *url, c.Flag("token-file").Value.String(), http.MethodGet, nil, &result.LiveConfig); err != nil {
			return err
		}
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

func configCheckCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "check FILE", Short: "Say whether a file is a configuration, and what is wrong",
		Long: `Say whether a file is a configuration that serve starts with, in this
environment, and all that is wrong with it.`,
	}
	asJSON := cli.JSON(c)
	cli.RunFiles(c, func(_ context.Context, s cli.Streams, files []string) error {
		if len(files) != 1 {
			return cli.WrongUsage("got %d files, want one", len(files))
		}
		source := config.NewSource(files[0], os.Getenv, nil)
		loaded, err := source.Load()
		if err != nil {
			return err
		}
		served := serve.ConfigOf(loaded, source)
		if err := served.Check(); err != nil {
			return err
		}
		result := &configResult{Command: "config", Verb: "check", File: files[0]}
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

func configApplyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "apply FILE --url URL", Short: "Give a server that runs a file in place of its own",
		Long: `Give a server that runs a file in place of its own. All of it is taken over, or
nothing if something is wrong, or cannot change while the server runs. The
server's own file stays as it is: at SIGHUP the server reads that again, or, if
it has none, goes back to its flags and its environment.`,
	}
	url := cli.Required(c, "url", "the `URL` of the server")
	tokenFile := c.Flags().String("token-file", "", "`FILE` of the bearer token; or it is in the environment, as "+tokenVariable)
	asJSON := cli.JSON(c)
	cli.RunFiles(c, func(ctx context.Context, s cli.Streams, files []string) error {
		if len(files) != 1 {
			return cli.WrongUsage("got %d files, want one", len(files))
		}
		document, err := config.Document(files[0])
		if err != nil {
			return err
		}
		result := &configResult{Command: "config", Verb: "apply", File: files[0], URL: *url}
		if err := askConfig(ctx, *url, *tokenFile, http.MethodPut, document, &result.LiveConfig); err != nil {
			return err
		}
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

// askConfig asks a server about its configuration.
func askConfig(ctx context.Context, url, tokenFile, method string, document []byte, answer *serve.LiveConfig) (err error) {
	token, err := readToken(tokenFile)
	if err != nil {
		return err
	}
	server, err := newServerKeeper(url, token)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	return server.ask(ctx, method, server.base.JoinPath("v1", "config"), document, answer)
}

// configResult is what a command about the configuration has done, in the words of its JSON.
type configResult struct {
	Command string `json:"command"`
	Verb    string `json:"verb"`
	File    string `json:"file,omitempty"`
	URL     string `json:"url,omitempty"`
	serve.LiveConfig
}

func (r *configResult) text(c *console.Console) {
	switch r.Verb {
	case "check":
		c.Say("%s: nothing is wrong", r.File)
		return
	case "apply":
		c.Say("%s is the configuration of %s until SIGHUP", r.File, r.URL)
		return
	}
	t := table.New(table.Left("setting"), table.Left("value"), table.Left("from"), table.Left("while it runs"))
	for _, s := range r.Settings {
		changes := "can change"
		if s.Fixed != "" {
			changes = "stays"
		}
		t.Row(s.Key, valueText(s.Value), cmp.Or(s.Place, s.Source), changes)
	}
	c.Print(t.String())
	if r.Changed != nil {
		c.Say("changed while the server ran, at %v", r.Changed.UTC())
	}
	if r.Refused != "" {
		c.Say("the last change has failed: %s", r.Refused)
	}
}

// valueText is a value as a file has it, about.
func valueText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64: // it came as JSON
		return fmt.Sprintf("%.0f", v)
	}
	text, err := json.Marshal(value)
	if err != nil || string(text) == "null" {
		return ""
	}
	return strings.ReplaceAll(string(text), ",", ", ")
}
