package logs_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/partita-go/partita/logs"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// A program that logs with log/slog sees what partitions do; all else only if something is wrong.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "partita")
	must(err)
	defer os.RemoveAll(dir)
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime})

	l, err := logs.New(logs.FromSlog(handler).Core(), map[string]logs.Group{
		logs.AllGroups: {Level: zap.WarnLevel}, "partition": {Level: zap.InfoLevel, Rate: 10},
	})
	must(err)

	descriptor := messages.Descriptor{Application: "shops", Partitions: 1, Kinds: []messages.Kind{{ID: 1, Name: "shop"}}}
	store, err := bolt.Open(ctx, filepath.Join(dir, "store"), descriptor, bolt.Options{Create: true})
	must(err)
	system := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	parts := partition.NewAppParts(system, partition.Options{Logger: zap.New(l)})
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
	must(err)
	must(app.Ready(ctx))
	must(l.SetGroups(map[string]logs.Group{logs.AllGroups: {Level: zap.WarnLevel}})) // at any time
	must(errors.Join(parts.Close(ctx), store.Close(ctx), l.Sync()))
	system.Shutdown()
	// Output:
	// level=INFO msg="partition is normal" logger=shops.partition actor=partition/0 epoch=1 last=0 replayed=0
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
