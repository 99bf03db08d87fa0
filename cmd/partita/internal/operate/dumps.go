package operate

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// defaultDumpLines is how many lines a search of dumps sorts unless it is told another number; each takes about
// 1 KiB.
const defaultDumpLines = 1_000_000

func dumpsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "dumps FILE…", Short: "Search dumps of messages",
		Long: `Search files that serve --dump has written, in any order, also those that
end in .gz: print the messages that have all that is asked for, by time. With
--workspace it finds requests that name the workspace, and their answers.`,
	}
	set := c.Flags()
	var s dumpSearch
	set.StringVar(&s.query.Group, "group", "", "find messages of the actors of a group, `NAME`")
	set.StringVar(&s.query.Message, "message", "", "find messages of a type, `NAME`")
	set.Func("trace", "find the requests of trace `ID`, 16 hexadecimal digits; with --join, their answers too", func(text string) (err error) {
		s.query.Trace, err = ids.ParseTraceID(text)
		return err
	})
	var workspace, from, to *string
	set.Func("workspace", "find messages of workspace `W`", given(&workspace))
	set.Func("from", "find messages from `TIME` on, as 2026-03-29T12:00:00Z", given(&from))
	set.Func("to", "find messages before `TIME`", given(&to))
	set.BoolVar(&s.join, "join", false, "print requests with their answers and the time between, in seconds with --json")
	set.BoolVar(&s.holes, "holes", false, "print which sequence numbers are missing: lines that were lost, or above a limit")
	set.BoolVar(&s.follow, "follow", false, "print what comes, until an interrupt, also when the file is exchanged")
	set.IntVar(&s.limit, "limit", defaultDumpLines, "refuse to sort more than `N` messages")
	asJSON := cli.JSON(c)
	c.AddCommand(dumpsReopenCommand())
	cli.RunFiles(c, func(ctx context.Context, streams cli.Streams, files []string) error {
		if err := s.check(files, workspace, from, to); err != nil {
			return err
		}
		s.json, s.notes, s.out = *asJSON, streams.Err, bufio.NewWriter(streams.Out)
		return errors.Join(s.run(ctx, files), s.out.Flush())
	})
	return c
}

// dumpSearch searches dumps.
type dumpSearch struct {
	query               dumps.Query
	join, holes, follow bool
	json                bool
	limit               int
	notes               io.Writer
	out                 *bufio.Writer
	lines               []dumps.Line
	// bad is how many lines of a file were none.
	bad int
	// told says that they were told of when the files were read before.
	told bool
}

func (s *dumpSearch) check(files []string, workspace, from, to *string) (err error) {
	if err := cli.InRange("limit", s.limit, 1, 1<<31-1); err != nil {
		return err
	}
	if err := s.checkMode(files, workspace != nil); err != nil {
		return err
	}
	if workspace != nil {
		ws, err := messages.ParseWSID(*workspace)
		if err != nil {
			return cli.WrongUsage("--workspace: %v", err)
		}
		s.query.Workspace = &ws
	}
	if s.query.From, err = parseTime("from", from); err != nil {
		return err
	}
	s.query.To, err = parseTime("to", to)
	return err
}

// checkMode returns what does not go together.
func (s *dumpSearch) checkMode(files []string, workspace bool) error {
	switch {
	case s.join && s.holes:
		return cli.WrongUsage("--join and --holes exclude each other")
	case s.follow && (s.join || s.holes):
		return cli.WrongUsage("--follow excludes --join and --holes")
	case s.follow && len(files) != 1:
		return cli.WrongUsage("--follow: got %d files, want one", len(files))
	case s.holes && (s.query.Message != "" || s.query.Trace != 0 || workspace):
		return cli.WrongUsage("--holes excludes --message, --trace and --workspace: a line that is not looked for is not missing")
	}
	return nil
}

// parseTime reads the time of a flag, the zero time if it was not given.
func parseTime(flag string, text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, *text)
	if err != nil {
		return at, cli.WrongUsage("--%s: got %.40q, want a time like 2026-03-29T12:00:00Z", flag, *text)
	}
	return at, nil
}

func (s *dumpSearch) run(ctx context.Context, files []string) error {
	if s.follow {
		return s.followFile(ctx, files[0])
	}
	if err := s.gather(ctx, files); err != nil {
		return err
	}
	switch {
	case s.join:
		return s.printExchanges()
	case s.holes:
		return s.printHoles()
	}
	for i := range s.lines {
		if err := s.printLine(&s.lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// gather keeps the lines of files that are looked for, in order of time.
func (s *dumpSearch) gather(ctx context.Context, files []string) error {
	passes := []func(string, *dumps.Line) error{s.learn, s.keep}
	if s.query.Trace == 0 && s.query.Workspace == nil {
		passes = passes[1:]
	}
	for i, take := range passes {
		s.told = i > 0
		for _, name := range files {
			if err := s.read(ctx, name, take); err != nil {
				return err
			}
		}
	}
	dumps.SortByTime(s.lines)
	return nil
}

// learn takes note of the requests whose answers are looked for, in any order.
func (s *dumpSearch) learn(name string, l *dumps.Line) error {
	s.query.Learn(l)
	if s.query.Learned() > s.limit {
		return s.tooMany(name)
	}
	return nil
}

// keep keeps a line if it is looked for.
func (s *dumpSearch) keep(name string, l *dumps.Line) error {
	if !s.query.Finds(l) {
		return nil
	}
	if len(s.lines) == s.limit {
		return s.tooMany(name)
	}
	s.lines = append(s.lines, *l)
	return nil
}

func (s *dumpSearch) tooMany(name string) error {
	return fmt.Errorf("%s: more than %d messages: look for less, or raise --limit", name, s.limit)
}

// read takes the lines of a file.
func (s *dumpSearch) read(ctx context.Context, name string, take func(string, *dumps.Line) error) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.bad = 0
	for l, err := range dumps.Read(r) {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, dumps.ErrLine):
			s.note(name, err)
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := take(name, &l); err != nil {
			return err
		}
	}
	return nil
}

// maxBadNotes is how many lines of a file that are none are told one by one.
const maxBadNotes = 10

func (s *dumpSearch) note(name string, err error) {
	if s.told {
		return
	}
	switch s.bad++; {
	case s.bad <= maxBadNotes:
		_, _ = fmt.Fprintf(s.notes, "partita: %s\n", human.Plain(name+": "+err.Error()))
	case s.bad == maxBadNotes+1:
		_, _ = fmt.Fprintf(s.notes, "partita: %s: and more such lines\n", human.Plain(name))
	}
}

// document prints a value as JSON.
func (s *dumpSearch) document(value any) error {
	e := json.NewEncoder(s.out)
	e.SetEscapeHTML(false) // "<hidden>" stays as it is
	return e.Encode(value)
}

func (s *dumpSearch) printLine(l *dumps.Line) error {
	if s.json {
		return s.document(l)
	}
	_, err := fmt.Fprintf(s.out, "%s  %s/%s  #%d  %s %s %s%s  %s\n", l.Time.Format(dumpTime), human.Plain(l.Group), human.Plain(l.Key),
		l.Number, l.Direction, l.Kind, human.Plain(l.Message), traceText(l), human.Plain(string(l.Body)))
	return err
}

// dumpTime is the form of times, all equally long.
const dumpTime = "2006-01-02T15:04:05.000000Z07:00"

func traceText(l *dumps.Line) string {
	if l.Trace == 0 {
		return ""
	}
	return fmt.Sprintf("  trace %v", l.Trace)
}

// exchangeResult is a request and its answer, in the words of its JSON.
type exchangeResult struct {
	Request  dumps.Line       `json:"request"`
	Response *dumps.Line      `json:"response,omitempty"`
	Took     *console.Seconds `json:"took,omitempty"`
}

func (s *dumpSearch) printExchanges() error {
	all := dumps.Join(s.lines)
	for i := range all {
		if err := s.printExchange(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *dumpSearch) printExchange(e *dumps.Exchange) error {
	if s.json {
		r := exchangeResult{Request: e.Request, Response: e.Response}
		if e.Response != nil {
			r.Took = new(console.Seconds(e.Took()))
		}
		return s.document(r)
	}
	l, answer := &e.Request, "no answer"
	if e.Response != nil {
		answer = fmt.Sprintf("%s after %v  %s", human.Plain(e.Response.Message), e.Took(), human.Plain(string(e.Response.Body)))
	}
	_, err := fmt.Fprintf(s.out, "%s  %s/%s  %s %s%s  %s  → %s\n", l.Time.Format(dumpTime), human.Plain(l.Group), human.Plain(l.Key),
		l.Direction, human.Plain(l.Message), traceText(l), human.Plain(string(l.Body)), answer)
	return err
}

// holeResult is a range of numbers that are missing, in the words of its JSON.
type holeResult struct {
	Group  string         `json:"group"`
	Node   uint16         `json:"node,omitempty"`
	First  console.Number `json:"first"`
	Last   console.Number `json:"last"`
	Count  console.Number `json:"count"`
	After  time.Time      `json:"after"`
	Before time.Time      `json:"before"`
}

func (s *dumpSearch) printHoles() error {
	holes, missing := dumps.Holes(s.lines), uint64(0)
	for i := range holes {
		h := &holes[i]
		missing += h.Count()
		if err := s.printHole(h); err != nil {
			return err
		}
	}
	if s.json {
		return nil
	}
	_, err := fmt.Fprintf(s.out, "%d lines, %d numbers are missing in %d holes\n", len(s.lines), missing, len(holes))
	return err
}

func (s *dumpSearch) printHole(h *dumps.Hole) error {
	if s.json {
		return s.document(holeResult{
			h.Group, h.Node, console.Number(h.First), console.Number(h.Last), console.Number(h.Count()), h.After, h.Before,
		})
	}
	_, err := fmt.Fprintf(s.out, "%s: #%d to #%d, %d lines, between %s and %s\n", human.Plain(h.Group), h.First, h.Last, h.Count(),
		h.After.Format(dumpTime), h.Before.Format(dumpTime))
	return err
}
