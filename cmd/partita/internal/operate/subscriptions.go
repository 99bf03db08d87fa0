package operate

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
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

var verbs = []string{
	verbList, verbShow, verbParked, verbReplay, verbDrop, verbPause, verbResume, verbRewind, verbSkip, verbDelete,
}

// keeper is where subscriptions are kept: a store that nobody has open, or a server.
type keeper interface {
	list(ctx context.Context) ([]httpapi.Subscription, error)
	show(ctx context.Context, name string) (httpapi.Subscription, error)
	parked(ctx context.Context, name string) ([]httpapi.ParkedEvent, error)
	// change does what a verb says; at is an event of a log, for those verbs that need one.
	change(ctx context.Context, verb, name string, at partition.ParkedEvent) error
	close() error
}

// subscriptionsCommands are the commands about subscriptions.
func subscriptionsCommands() []cli.Command {
	all := []cli.Command{{Name: subscriptionsName, Flags: func(*flag.FlagSet) func(context.Context, cli.Streams) error {
		return func(context.Context, cli.Streams) error {
			return cli.WrongUsage("%s: want one of %s behind it", subscriptionsName, strings.Join(verbs, ", "))
		}
	}}}
	for _, verb := range verbs {
		all = append(all, cli.Command{Name: subscriptionsName + " " + verb, Flags: func(set *flag.FlagSet) func(context.Context, cli.Streams) error {
			return subscriptionsFlags(set, verb)
		}})
	}
	return all
}

// joinVerb makes one word of a command about subscriptions and its verb.
func joinVerb(args []string) []string {
	if len(args) < 2 || args[0] != subscriptionsName || strings.HasPrefix(args[1], "-") {
		return args
	}
	return append([]string{args[0] + " " + args[1]}, args[2:]...)
}

// subscriptionsCommand is what a command about subscriptions was told.
type subscriptionsCommand struct {
	verb                string
	dir, url, tokenFile string
	name                string
	partition, offset   *string
	all                 bool
	at                  partition.ParkedEvent
}

func subscriptionsFlags(set *flag.FlagSet, verb string) func(context.Context, cli.Streams) error {
	k := subscriptionsCommand{verb: verb}
	set.StringVar(&k.dir, "db", "", "")
	set.StringVar(&k.url, "url", "", "")
	set.StringVar(&k.tokenFile, "token-file", "", "")
	if verb != verbList {
		set.StringVar(&k.name, "name", "", "")
	}
	if k.needsEvent() {
		set.Func("partition", "", given(&k.partition))
		set.Func("offset", "", given(&k.offset))
	}
	if verb == verbReplay {
		set.BoolVar(&k.all, "all", false, "")
	}
	asJSON := set.Bool("json", false, "")
	return func(ctx context.Context, s cli.Streams) (err error) {
		if err := k.check(); err != nil {
			return err
		}
		keeper, err := k.open(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, keeper.close()) }()
		result := &subscriptionsResult{Command: subscriptionsName, Verb: verb, Store: k.dir, URL: k.url, Name: k.name}
		if err := k.run(ctx, keeper, result); err != nil {
			return err
		}
		return console.New(s, *asJSON).Result(result, result.text)
	}
}

// needsEvent reports whether the verb is about an event of a log.
func (k *subscriptionsCommand) needsEvent() bool {
	return slices.Contains([]string{verbReplay, verbDrop, verbRewind}, k.verb)
}

func (k *subscriptionsCommand) wrong(format string, args ...any) error {
	return cli.WrongUsage("%s %s: %s", subscriptionsName, k.verb, fmt.Sprintf(format, args...))
}

func (k *subscriptionsCommand) check() error {
	switch {
	case (k.dir == "") == (k.url == ""):
		return k.wrong("want either --db or --url")
	case k.dir != "" && k.tokenFile != "":
		return k.wrong("--token-file goes with --url")
	case k.verb != verbList && k.name == "":
		return k.wrong("--name is missing")
	case k.verb == verbReplay && k.dir != "":
		return k.wrong("want --url: only a running program has the handler")
	case k.all && (k.partition != nil || k.offset != nil):
		return k.wrong("--all excludes --partition and --offset")
	}
	if !k.needsEvent() || k.all {
		return nil
	}
	return k.checkEvent()
}

func (k *subscriptionsCommand) checkEvent() error {
	if k.partition == nil || k.offset == nil {
		return k.wrong("--partition or --offset is missing")
	}
	p, err := messages.ParsePartitionID(*k.partition)
	if err != nil {
		return k.wrong("--partition: %v", err)
	}
	offset, err := messages.ParsePLogOffset(*k.offset)
	if err != nil || offset == 0 {
		return k.wrong("--offset: got %.40q, want a whole number from 1 on", *k.offset)
	}
	k.at = partition.ParkedEvent{Partition: p, Offset: uint64(offset)}
	return nil
}

func (k *subscriptionsCommand) open(ctx context.Context) (keeper, error) {
	if k.url == "" {
		reads := k.verb == verbList || k.verb == verbShow || k.verb == verbParked
		return openStoreKeeper(ctx, k.dir, reads)
	}
	token, err := readToken(k.tokenFile)
	if err != nil {
		return nil, err
	}
	return newServerKeeper(k.url, token)
}

func (k *subscriptionsCommand) run(ctx context.Context, from keeper, r *subscriptionsResult) (err error) {
	switch {
	case k.verb == verbList:
		r.Subscriptions, err = from.list(ctx)
	case k.verb == verbShow:
		var one httpapi.Subscription
		one, err = from.show(ctx, k.name)
		r.Subscription = &one
	case k.verb == verbParked:
		r.Parked, err = from.parked(ctx, k.name)
	case k.all:
		return k.replayAll(ctx, from, r)
	default:
		err = from.change(ctx, k.verb, k.name, k.at)
	}
	return err
}

// replayAll replays what is parked when it begins. An event that the handler cannot handle
// keeps no other from being tried.
func (k *subscriptionsCommand) replayAll(ctx context.Context, from keeper, r *subscriptionsResult) error {
	parked, err := from.parked(ctx, k.name)
	if err != nil {
		return err
	}
	failed, first := 0, error(nil)
	r.Replayed = []httpapi.ParkedEvent{}
	for _, e := range parked {
		err := from.change(ctx, verbReplay, k.name, partition.ParkedEvent{Partition: e.Partition, Offset: e.Offset})
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
