package dumps_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// Dump the messages of partitions to a file, and look at what an append has caused. The four lines about the dump are
// all that a program needs; and Reopen, when the file was moved away.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "partita")
	check(err)
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "messages.dump")

	dump, err := dumps.Open(file, dumps.Options{})
	check(err)
	err = dump.SetGroups(map[string]dumps.Group{"partition": {}}) // at any time; nil ends it
	check(err)

	descriptor := messages.Descriptor{Application: "shops", Partitions: 1, Kinds: []messages.Kind{{ID: 1, Name: "shop"}}}
	store, err := bolt.Open(ctx, filepath.Join(dir, "store"), descriptor, bolt.Options{Create: true})
	check(err)
	system := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	parts := partition.NewAppParts(system, partition.Options{Observer: dump})
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
	check(err)
	check(app.Ready(ctx))
	sequencer, err := app.SequencerOf(42)
	check(err)
	_, err = sequencer.Append(ctx, partition.AppendTo{Workspace: 42, Kind: 1}, partition.Draft{Body: []byte("secret")})
	check(err)
	check(errors.Join(parts.Close(ctx), store.Close(ctx), dump.Close(ctx)))
	system.Shutdown()

	f, err := os.Open(file)
	check(err)
	defer f.Close()
	var lines []dumps.Line
	for line, err := range dumps.Read(f) {
		check(err)
		lines = append(lines, line)
	}
	dumps.SortByTime(lines)
	for _, e := range dumps.Join(lines) {
		if e.Request.Message == "Append" || e.Request.Message == "WriteEvents" {
			fmt.Println(e.Request.Direction, e.Request.Message, "is answered by", e.Response.Message)
		}
		if e.Request.Message == "Append" {
			fmt.Println(string(e.Request.Body))
		}
	}
	fmt.Println("holes:", len(dumps.Holes(lines)))
	// Output:
	// In Append is answered by Appended
	// {"Workspace":42,"Kind":1,"Drafts":[{"Body":"<hidden>"}]}
	// Out WriteEvents is answered by EventsWritten
	// holes: 0
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
