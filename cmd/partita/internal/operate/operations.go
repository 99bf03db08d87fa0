package operate

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/partita/internal/serve"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// What a server answers an operator is what the command of the same name finds in a store that nobody has open.

// operationsOf returns what can be asked of the store of a directory while it is served.
func operationsOf(dir string, s *bolt.Store) []serve.Operation {
	lines, documents := &sharedLog{store: s, write: writeText}, &sharedLog{store: s, write: writeJSON}
	return []serve.Operation{
		{Name: "inspect", Answer: func(ctx context.Context, q url.Values) (any, error) {
			if err := onlyKnown(q); err != nil {
				return nil, err
			}
			in, err := s.Inspect(ctx)
			return newInspectResult(dir, &in), err
		}},
		{Name: "numbers", Answer: func(ctx context.Context, q url.Values) (any, error) {
			if err := onlyKnown(q, "workspace"); err != nil {
				return nil, err
			}
			ws, err := messages.ParseWSID(q.Get("workspace"))
			if err != nil {
				return nil, cli.WrongUsage("workspace: %v", err)
			}
			r, err := readNumbers(ctx, s, ws)
			if err == nil {
				r.Command, r.Store = "numbers", dir
			}
			return r, err
		}},
		{Name: "backup", ContentType: "application/octet-stream", Stream: func(ctx context.Context, q url.Values, w io.Writer, _ func() error) error {
			if err := onlyKnown(q); err != nil {
				return err
			}
			t := serve.NewThrottle()
			return s.WriteBackup(ctx, w, bolt.CopyOptions{Progress: func(bolt.CopyProgress) { t.Rest(ctx, backupShare, nil) }})
		}},
		{Name: "log", ContentType: "application/x-ndjson", Stream: func(ctx context.Context, q url.Values, w io.Writer, flush func() error) error {
			l, err := askedLog(q)
			if err != nil {
				return err
			}
			l.out, l.direct, l.flushed = bufio.NewWriterSize(w, logBuffer), w, flush
			switch {
			case l.trace != 0 || q.Has("partition") || q.Has("workspace"):
			case l.asJSON:
				l.shared = documents
			default:
				l.shared = lines
			}
			return l.printStore(ctx, s)
		}},
	}
}

// backupShare is how much of the time a backup is written, in percent: appends have the rest.
const backupShare = 25

// logBuffer is how much of a log is written at a time, in bytes.
const logBuffer = 64 << 10

// onlyKnown returns wrong usage if there is a parameter that is not known, or is there twice.
func onlyKnown(q url.Values, known ...string) error {
	for name, values := range q {
		if !slices.Contains(known, name) || len(values) != 1 {
			return cli.WrongUsage("parameter %.40q: got %d, want one of %q, once", name, len(values), known)
		}
	}
	return nil
}

// query asks a server for what is to be printed.
func (l *logPrinter) query(partition, workspace *string) url.Values {
	q := url.Values{
		"from": {strconv.FormatUint(l.next, 10)}, "limit": {strconv.FormatUint(l.left, 10)},
		"json": {strconv.FormatBool(l.asJSON)}, "follow": {strconv.FormatBool(l.follow)},
	}
	if partition != nil {
		q.Set("partition", *partition)
	}
	if workspace != nil {
		q.Set("workspace", *workspace)
	}
	if l.trace != 0 {
		q.Set("trace", l.trace.String())
	}
	return q
}

// askedLog reads what query has written. What is not there has its default.
func askedLog(q url.Values) (l *logPrinter, err error) {
	if err := onlyKnown(q, "partition", "workspace", "trace", "from", "limit", "json", "follow"); err != nil {
		return nil, err
	}
	l = &logPrinter{next: 1, left: ^uint64(0), write: writeJSON, asJSON: true}
	var partition, workspace *string
	for name, set := range map[string]func(string) error{
		"partition": given(&partition), "workspace": given(&workspace),
		"trace":  func(text string) error { l.trace, err = ids.ParseTraceID(text); return err },
		"from":   func(text string) error { l.next, err = strconv.ParseUint(text, 10, 64); return err },
		"limit":  func(text string) error { l.left, err = strconv.ParseUint(text, 10, 64); return err },
		"json":   func(text string) error { l.asJSON, err = strconv.ParseBool(text); return err },
		"follow": func(text string) error { l.follow, err = strconv.ParseBool(text); return err },
	} {
		if !q.Has(name) {
			continue
		}
		if err := set(q.Get(name)); err != nil {
			return nil, cli.WrongUsage("%s: %v", name, fmt.Errorf("got %.40q: %w", q.Get(name), err))
		}
	}
	if !l.asJSON {
		l.write = writeText
	}
	return l, l.check(partition, workspace)
}
