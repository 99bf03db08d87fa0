package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// subscriptionsName is the first word of the commands about subscriptions; a verb is the
// second.
const subscriptionsName = "subscriptions"

// The verbs. Those that change something, but for delete, are the HTTP API's names for it.
const (
	verbList   = "list"
	verbShow   = "show"
	verbParked = "parked"
	verbReplay = "replay"
	verbDrop   = "drop"
	verbPause  = "pause"
	verbResume = "resume"
	verbRewind = "rewind"
	verbSkip   = "skip"
	verbDelete = "delete"
)

// keeper is where subscriptions are kept: a store that nobody has open, or a server.
type keeper interface {
	list(ctx context.Context) ([]httpapi.Subscription, error)
	show(ctx context.Context, name string) (httpapi.Subscription, error)
	parked(ctx context.Context, name string) ([]httpapi.ParkedEvent, error)
	// change does what a verb says; at is an event of a log, for those verbs that need one.
	change(ctx context.Context, verb, name string, at partition.ParkedEvent) error
	close() error
}

// subscriptionsCommand is the command about subscriptions, with a command for each verb.
func subscriptionsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: subscriptionsName + " VERB", Short: "Look after the durable consumers of a store",
		Long: `Look after the durable consumers of a store: with --db of one that nobody has
open, which a change opens as the application does, or that partita serve has;
with --url in a program that serves the HTTP API, while it runs them.`,
	}
	for _, v := range []struct{ verb, short string }{
		{verbList, "Show all of them"},
		{verbShow, "Show one, with each log that it reads"},
		{verbParked, "Show the events that it has given up, and why"},
		{verbReplay, "Hand a parked event, or all, to the handler once more"},
		{verbDrop, "Forget a parked event"},
		{verbPause, "Deliver nothing until it is resumed"},
		{verbResume, "Go on"},
		{verbRewind, "Set the next event of a log, behind or ahead"},
		{verbSkip, "Go behind the last event of each log"},
		{verbDelete, "Forget the subscription"},
	} {
		c.AddCommand(verbCommand(v.verb, v.short))
	}
	return c
}

// subscriptionsVerb is what a command about subscriptions was told.
type subscriptionsVerb struct {
	verb                string
	dir, url, tokenFile string
	name                *string
	partition, offset   *string
	all                 bool
	at                  partition.ParkedEvent
}

func verbCommand(verb, short string) *cobra.Command {
	c := &cobra.Command{Use: verb + " {--db DIR | --url URL}", Short: short}
	k, set := subscriptionsVerb{verb: verb, name: new(string)}, c.Flags()
	set.StringVar(&k.dir, "db", "", "the directory of the store, `DIR`, which nobody or a server has open")
	set.StringVar(&k.url, "url", "", "the `URL` of a program that serves the HTTP API")
	set.StringVar(&k.tokenFile, "token-file", "", "`FILE` of the bearer token for --url; or it is in the environment, as "+tokenVariable)
	if verb != verbList {
		c.Use += " --name NAME"
		k.name = cli.Required(c, "name", "the subscription's `NAME`")
	}
	if k.needsEvent() {
		set.Func("partition", "the partition of the event, `P`", given(&k.partition))
		set.Func("offset", "the offset of the event, `N`: in the log of its partition, or of its workspace", given(&k.offset))
	}
	if verb == verbReplay {
		set.BoolVar(&k.all, "all", false, "all that are parked")
	}
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) (err error) {
		if err := k.check(); err != nil {
			return err
		}
		c := console.New(s, *asJSON)
		keeper, err := k.open(ctx, c)
		c.Done()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, keeper.close()) }()
		result := &subscriptionsResult{Command: subscriptionsName, Verb: verb, Store: k.dir, URL: k.url, Name: *k.name}
		if err := k.run(ctx, keeper, result); err != nil {
			return err
		}
		return c.Result(result, result.text)
	})
	return c
}

// needsEvent reports whether the verb is about an event of a log.
func (k *subscriptionsVerb) needsEvent() bool {
	return slices.Contains([]string{verbReplay, verbDrop, verbRewind}, k.verb)
}

func (k *subscriptionsVerb) check() error {
	switch {
	case (k.dir == "") == (k.url == ""):
		return cli.WrongUsage("want either --db or --url")
	case k.dir != "" && k.tokenFile != "":
		return cli.WrongUsage("--token-file goes with --url")
	case k.all && (k.partition != nil || k.offset != nil):
		return cli.WrongUsage("--all excludes --partition and --offset")
	}
	if !k.needsEvent() || k.all {
		return nil
	}
	return k.checkEvent()
}

func (k *subscriptionsVerb) checkEvent() error {
	if k.partition == nil || k.offset == nil {
		return cli.WrongUsage("--partition or --offset is missing")
	}
	p, err := messages.ParsePartitionID(*k.partition)
	if err != nil {
		return cli.WrongUsage("--partition: %v", err)
	}
	offset, err := messages.ParsePLogOffset(*k.offset)
	if err != nil || offset == 0 {
		return cli.WrongUsage("--offset: got %.40q, want a whole number from 1 on", *k.offset)
	}
	k.at = partition.ParkedEvent{Partition: p, Offset: uint64(offset)}
	return nil
}

func (k *subscriptionsVerb) open(ctx context.Context, c *console.Console) (keeper, error) {
	if k.url == "" {
		server, err := serverOf(ctx, k.dir)
		if err != nil {
			return nil, err
		}
		if server != nil {
			return server, nil
		}
		if k.verb == verbReplay {
			return nil, cli.WrongUsage("--db: no server has the store open: only a running program has the handler")
		}
		reads := k.verb == verbList || k.verb == verbShow || k.verb == verbParked
		return openStoreKeeper(ctx, k.dir, reads, showRebuild(c))
	}
	token, err := readToken(k.tokenFile)
	if err != nil {
		return nil, err
	}
	server, err := newServerKeeper(k.url, token)
	if err != nil {
		return nil, err
	}
	return server, nil
}

// showRebuild shows how far an open has come that makes state.db anew. All else that it does is short.
func showRebuild(c *console.Console) func(bolt.Progress) {
	begun := false
	return func(p bolt.Progress) {
		if p.Phase != bolt.PhaseRebuild {
			return
		}
		if !begun {
			begun = true
			c.Phase("rebuild state.db", int64(p.Total))
		}
		c.Set(int64(p.Done))
	}
}

func (k *subscriptionsVerb) run(ctx context.Context, from keeper, r *subscriptionsResult) (err error) {
	switch {
	case k.verb == verbList:
		r.Subscriptions, err = from.list(ctx)
	case k.verb == verbShow:
		return k.show(ctx, from, r)
	case k.verb == verbResume:
		if err := from.change(ctx, k.verb, *k.name, k.at); err != nil {
			return err
		}
		return k.show(ctx, from, r) // whether anything runs it
	case k.verb == verbParked:
		r.Parked, err = from.parked(ctx, *k.name)
	case k.all:
		return k.replayAll(ctx, from, r)
	default:
		err = from.change(ctx, k.verb, *k.name, k.at)
	}
	return err
}

func (k *subscriptionsVerb) show(ctx context.Context, from keeper, r *subscriptionsResult) error {
	one, err := from.show(ctx, *k.name)
	r.Subscription = &one
	return err
}

// replayAll replays what is parked when it begins. An event that the handler cannot handle
// keeps no other from being tried.
func (k *subscriptionsVerb) replayAll(ctx context.Context, from keeper, r *subscriptionsResult) error {
	parked, err := from.parked(ctx, *k.name)
	if err != nil {
		return err
	}
	failed, first := 0, error(nil)
	r.Replayed = []httpapi.ParkedEvent{}
	for _, e := range parked {
		err := from.change(ctx, verbReplay, *k.name, partition.ParkedEvent{Partition: e.Partition, Offset: e.Offset})
		switch {
		case err == nil:
			r.Replayed = append(r.Replayed, e)
		case errors.Is(err, errNotHandled):
			failed++
			first = cmp.Or(first, err)
		default:
			return err
		}
	}
	if first != nil {
		return fmt.Errorf("%d of %d parked events could not be handled, the others were; the first: %w", failed, len(parked), first)
	}
	return nil
}
