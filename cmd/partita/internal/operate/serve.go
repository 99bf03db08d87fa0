package operate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/partita/internal/serve"
)

const (
	// defaultListen is where serve listens unless it is told another address.
	defaultListen = "127.0.0.1:7420"
	// tokenVariable is the environment's variable with the token. A flag would show it to
	// everybody who can list processes.
	tokenVariable = "PARTITA_TOKEN"
)

// maxConnections bounds --connections.
const maxConnections = 1 << 20

func serveFlags(set *flag.FlagSet) func(context.Context, cli.Streams) error {
	var c serve.Config
	set.StringVar(&c.Dir, "db", "", "")
	set.StringVar(&c.Listen, "listen", defaultListen, "")
	set.StringVar(&c.CertFile, "tls-cert", "", "")
	set.StringVar(&c.KeyFile, "tls-key", "", "")
	set.IntVar(&c.Connections, "connections", 1024, "")
	tokenFile := set.String("token-file", "", "")
	asJSON := set.Bool("json", false, "")
	return func(ctx context.Context, s cli.Streams) (err error) {
		if err := errors.Join(required("serve", "db", c.Dir), cli.InRange("connections", c.Connections, 4, maxConnections)); err != nil {
			return err
		}
		if c.Token, err = readToken(*tokenFile); err != nil {
			return err
		}
		var told error
		err = serve.Run(ctx, c, s.Err, func(url, application string) {
			result := &serveResult{Command: "serve", Store: c.Dir, Application: application, URL: url}
			told = console.New(s, *asJSON).Result(result, result.text)
		})
		if errors.Is(err, serve.ErrConfig) {
			return cli.WrongUsage("serve: %v", err)
		}
		err = about(c.Dir, errors.Join(told, err))
		if err != nil && ctx.Err() != nil {
			// That it was interrupted is all that the last line says.
			_, _ = fmt.Fprintf(s.Err, "partita: serve: %s\n", cli.OneLine(err))
		}
		return err
	}
}

// readToken returns the token of a file or of the environment, "" if there is none.
func readToken(file string) (string, error) {
	if file == "" {
		return os.Getenv(tokenVariable), nil
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("%s: there is no token in it", file)
	}
	return token, nil
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
