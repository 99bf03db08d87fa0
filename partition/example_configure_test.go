package partition_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// Change settings while an application runs. One that is wrong changes nothing, and is named.
func ExampleApp_Configure() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "partita")
	check(err)
	defer os.RemoveAll(dir)
	descriptor := messages.Descriptor{Application: "shops", Partitions: 2, Kinds: []messages.Kind{{ID: 1, Name: "shop"}}}
	store, err := bolt.Open(ctx, filepath.Join(dir, "store"), descriptor, bolt.Options{Create: true})
	check(err)
	parts := partition.NewAppParts(quietSystem(), partition.Options{})
	app, err := parts.Deploy(ctx, partition.Application{Descriptor: descriptor}, store)
	check(err)
	check(app.Ready(ctx))

	config := app.Config()
	config.Settings.FlushInterval, config.RequestLane = 100*time.Millisecond, 4096
	check(app.Configure(ctx, config))

	config.Settings.FlushInterval = time.Microsecond
	fmt.Println(app.Configure(ctx, config))
	fmt.Println(app.Config().Settings.FlushInterval, app.Config().RequestLane)

	check(errors.Join(parts.Close(ctx), store.Close(ctx)))
	// Output:
	// bad setting: FlushInterval: got 1µs, want at least 1ms
	// 100ms 4096
}
