package operate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/httpclient"
)

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show what the actors of a server do",
		Long: `Show what the actors of a server do: its partitions, command processors and
lanes of subscriptions. With --follow it goes on with each that changes, a line
each, with the time, until an interrupt, also when the server starts again; with
--json each line is a document.`,
	}
	set := c.Flags()
	url := set.String("url", "http://"+config.DefaultListen, "where the server is, `URL`")
	tokenFile := set.String("token-file", "", "`FILE` of the bearer token; or it is in the environment, as "+tokenVariable)
	follow := set.Bool("follow", false, "print what changes, until an interrupt")
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		token, err := readToken(*tokenFile)
		if err != nil {
			return err
		}
		client, err := httpclient.New(*url, httpclient.Options{Token: token})
		if err != nil {
			return cli.WrongUsage("--url: %v", err)
		}
		defer client.Close()
		all, err := askStatuses(ctx, client)
		switch {
		case err != nil:
			return err
		case *follow:
			return followStatuses(ctx, client, all, statusPrinter(s.Out, *asJSON))
		}
		result := &statusResult{Command: "status", URL: *url, Actors: all}
		return console.New(s, *asJSON).Result(result, result.text)
	})
	return c
}

// askStatuses does not wait for a server that is not there.
func askStatuses(ctx context.Context, client *httpclient.Client) ([]httpapi.ActorStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	all, err := client.Actors(ctx)
	if err != nil {
		return nil, err
	}
	answer := make([]httpapi.ActorStatus, len(all))
	for i := range all {
		answer[i] = httpapi.NewActorStatus(&all[i])
	}
	return answer, nil
}

// statusResult is what the actors of a server do, in the words of its JSON.
type statusResult struct {
	Command string                `json:"command"`
	URL     string                `json:"url"`
	Actors  []httpapi.ActorStatus `json:"actors"`
}

func (r *statusResult) text(c *console.Console) {
	for i := range r.Actors {
		c.Say("%s", statusText(&r.Actors[i]))
	}
}

// statusText returns what an actor does, in one line.
func statusText(s *httpapi.ActorStatus) string {
	text := s.Group + "/" + s.Key + " " + s.State
	if s.Details != "" {
		text += ": " + s.Details
	}
	if s.Restarts > 0 {
		text += " (" + human.Counted(s.Restarts, "restart") + ")"
	}
	return text
}

// statusPrinter returns what prints a status and the time of now.
func statusPrinter(w io.Writer, asJSON bool) func(*httpapi.ActorStatus) error {
	if asJSON {
		lines := json.NewEncoder(w)
		lines.SetEscapeHTML(false)
		return func(s *httpapi.ActorStatus) error { return lines.Encode(s) }
	}
	return func(s *httpapi.ActorStatus) error {
		_, err := fmt.Fprintf(w, "%s %s\n", time.Now().UTC().Format(time.RFC3339), human.Plain(statusText(s)))
		return err
	}
}

// followStatuses prints statuses, and each that differs from the one that was printed last of its actor.
func followStatuses(ctx context.Context, client *httpclient.Client, first []httpapi.ActorStatus, printStatus func(*httpapi.ActorStatus) error) error {
	last := make(map[[2]string]httpapi.ActorStatus)
	printNew := func(s *httpapi.ActorStatus) error {
		actor := [2]string{s.Group, s.Key}
		if last[actor] == *s {
			return nil
		}
		last[actor] = *s
		return printStatus(s)
	}
	for i := range first {
		if err := printNew(&first[i]); err != nil {
			return err
		}
	}
	for status, err := range client.Watch(ctx) {
		if err != nil {
			return err
		}
		now := httpapi.NewActorStatus(&status)
		if err := printNew(&now); err != nil {
			return err
		}
	}
	return nil
}
