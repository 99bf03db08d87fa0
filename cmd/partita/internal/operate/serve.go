package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

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

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "serve --db DIR", Short: "Run the application of a store, and serve it over HTTP",
		Long: `Run the application of a store, and serve it over HTTP until an interrupt. All
but loopback addresses need a certificate and a token. The API is at /v1; what
Prometheus wants to know is at /metrics.
With --dump FILE it writes messages of its actors to the file, which partita
dumps reads. SIGHUP opens the file anew, and ends the server without --dump.`,
	}
	dir, set := cli.DB(c), c.Flags()
	var config serve.Config
	set.StringVar(&config.Listen, "listen", defaultListen, "the address to listen on, `ADDR`")
	set.StringVar(&config.CertFile, "tls-cert", "", "`FILE` of the certificate, as PEM")
	set.StringVar(&config.KeyFile, "tls-key", "", "`FILE` of the certificate's key, as PEM")
	tokenFile := set.String("token-file", "", "`FILE` of the bearer token that requests must bring; or it is in the environment, as "+tokenVariable)
	set.IntVar(&config.Connections, "connections", 1024,
		"at most `N` connections at the same time; at most a quarter of them, and 256, are streams, and a half, and 512, wait for an event")
	set.Func("trace-node", "give requests trace ids, as node `N`, 0 to 65535, which no other server has", func(text string) error {
		node, err := strconv.ParseUint(text, 10, 16)
		config.TraceNode = new(uint16(node))
		return err
	})
	dump := dumpFlags(set, &config)
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		if err := cli.InRange("connections", config.Connections, 4, maxConnections); err != nil {
			return err
		}
		if config.Token, err = readToken(*tokenFile); err != nil {
			return err
		}
		if err := dump.apply(&config); err != nil {
			return err
		}
		defer dump.listen(&config)()
		config.Dir = *dir
		var told error
		err = serve.Run(ctx, config, s.Err, func(url, application string) {
			result := &serveResult{Command: "serve", Store: *dir, Application: application, URL: url}
			told = console.New(s, *asJSON).Result(result, result.text)
		})
		if errors.Is(err, serve.ErrConfig) {
			return cli.WrongUsage("%v", err)
		}
		err = about(*dir, errors.Join(told, err))
		if err != nil && ctx.Err() != nil {
			// That it was interrupted is all that the last line says.
			_, _ = fmt.Fprintf(s.Err, "partita: serve: %s\n", cli.OneLine(err))
		}
		return err
	})
	return c
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
