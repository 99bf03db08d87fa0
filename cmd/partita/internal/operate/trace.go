package operate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/ids"
)

func traceCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "trace ID [FILE…]", Short: "Print what belongs to a trace",
		Long: `Print what belongs to a trace, in order of time: its events, with --db of a
store that nobody has open, or with --url of a server; and the messages in
files that serve --dump has written, with the answers to them. An event stands
where it was registered, by the clock of the partition.
It reads the whole log.`,
	}
	set := c.Flags()
	var t traceSearch
	set.StringVar(&t.dir, "db", "", "look for events in the store in `DIR`")
	set.StringVar(&t.url, "url", "", "look for events at the `URL` of a program that serves the HTTP API")
	set.StringVar(&t.tokenFile, "token-file", "", "`FILE` of the bearer token for --url; or it is in the environment, as "+tokenVariable)
	set.IntVar(&t.limit, "limit", defaultDumpLines, "refuse to sort more than `N` events, or messages")
	asJSON := cli.JSON(c)
	cli.RunFiles(c, func(ctx context.Context, streams cli.Streams, args []string) error {
		if err := t.check(args); err != nil {
			return err
		}
		t.json, t.notes, t.out = *asJSON, streams.Err, bufio.NewWriter(streams.Out)
		return errors.Join(t.run(ctx, args[1:]), t.out.Flush())
	})
	return c
}

// traceSearch looks for what belongs to a trace, in dumps and elsewhere.
type traceSearch struct {
	dumpSearch
	dir, url, tokenFile string
	events              []tracedEvent
}

// tracedEvent is an event of the trace.
type tracedEvent struct {
	at time.Time
	httpapi.Event
}

func (t *traceSearch) check(args []string) (err error) {
	if t.query.Trace, err = ids.ParseTraceID(args[0]); err != nil {
		return cli.WrongUsage("%v", err)
	}
	switch {
	case t.dir != "" && t.url != "":
		return cli.WrongUsage("--db and --url exclude each other")
	case t.dir == "" && t.url == "" && len(args) == 1:
		return cli.WrongUsage("nothing to look at: want --db, --url or a file of dumps")
	case t.url == "" && t.tokenFile != "":
		return cli.WrongUsage("--token-file goes with --url")
	}
	return cli.InRange("limit", t.limit, 1, 1<<31-1)
}

func (t *traceSearch) run(ctx context.Context, files []string) (err error) {
	switch {
	case t.dir != "":
		err = t.readStore(ctx)
	case t.url != "":
		err = t.readServer(ctx)
	}
	if err == nil {
		err = t.gather(ctx, files)
	}
	if err != nil {
		return err
	}
	return t.print()
}

// readStore looks through the log of a store.
func (t *traceSearch) readStore(ctx context.Context) (err error) {
	server, err := serverOf(ctx, t.dir)
	if err != nil {
		return err
	}
	if server != nil {
		return t.readServed(ctx, server, t.dir)
	}
	s, closeIt, err := openReader(ctx, t.dir, t.notes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeIt()) }()
	d := s.Descriptor()
	printer := d.Printer()
	for e, err := range s.LogWithLSN(ctx, 1) {
		if err == nil && e.Trace == t.query.Trace {
			err = t.keepEvent(t.dir, httpapi.EventOf(&e.Event, printer))
		}
		if err != nil {
			return about(t.dir, err)
		}
	}
	return nil
}

// readServer looks through the log of a server.
func (t *traceSearch) readServer(ctx context.Context) error {
	token, err := readToken(t.tokenFile)
	if err != nil {
		return err
	}
	k, err := newServerKeeper(t.url, token)
	if err != nil {
		return err
	}
	return t.readServed(ctx, k, t.url)
}

// readServed looks through a log page by page.
func (t *traceSearch) readServed(ctx context.Context, k *serverKeeper, from string) error {
	defer func() { _ = k.close() }()
	return eachOf(ctx, k, k.base.JoinPath("v1", "log"), func(e httpapi.Event) error {
		if e.Trace != t.query.Trace {
			return nil
		}
		return t.keepEvent(from, e)
	})
}

func (t *traceSearch) keepEvent(from string, e httpapi.Event) error {
	if len(t.events) == t.limit {
		return fmt.Errorf("%s: more than %d events: raise --limit", from, t.limit)
	}
	at, err := time.Parse(time.RFC3339Nano, e.RegisteredAt)
	if err != nil {
		return fmt.Errorf("%s: partition %d, offset %d: registered_at: %w", from, e.Partition, e.PLogOffset, err)
	}
	t.events = append(t.events, tracedEvent{at, e})
	return nil
}

// print prints events and messages in order of time. Of the same time, the event comes first.
func (t *traceSearch) print() error {
	slices.SortStableFunc(t.events, func(a, b tracedEvent) int { return a.at.Compare(b.at) })
	lines := t.lines
	for i := range t.events {
		e := &t.events[i]
		for len(lines) > 0 && lines[0].Time.Before(e.at) {
			if err := t.printMessage(&lines[0]); err != nil {
				return err
			}
			lines = lines[1:]
		}
		if err := t.printEvent(e); err != nil {
			return err
		}
	}
	for i := range lines {
		if err := t.printMessage(&lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// tracedResult is an event or a message, in the words of its JSON.
type tracedResult struct {
	Event   *httpapi.Event `json:"event,omitempty"`
	Message *dumps.Line    `json:"message,omitempty"`
}

func (t *traceSearch) printMessage(l *dumps.Line) error {
	if t.json {
		return t.document(tracedResult{Message: l})
	}
	return t.printLine(l)
}

func (t *traceSearch) printEvent(e *tracedEvent) error {
	if t.json {
		return t.document(tracedResult{Event: &e.Event})
	}
	_, err := fmt.Fprintf(t.out, "%s  event  partition %d/%d  workspace %d/%d", e.at.Format(dumpTime), e.Partition, e.PLogOffset, e.Workspace, e.WLogOffset)
	for _, n := range e.Numbers {
		if err == nil {
			_, err = fmt.Fprintf(t.out, "  %d:%d", n.Sequence, n.Number)
		}
	}
	if err == nil {
		_, err = fmt.Fprintf(t.out, "  %s\n", human.Plain(bodyText(&e.Event)))
	}
	return err
}

// bodyText is the beginning of an event's body.
func bodyText(e *httpapi.Event) string {
	if e.BodyBase64 != nil {
		return "body " + show([]byte(*e.BodyBase64)) + " in base 64"
	}
	return "body " + show(e.Body)
}
