package tests

import (
	"context"
	"fmt"
	"os"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/storage/bolt"
)

// The number of a generator comes from the store, the launch from the deployment. A process that starts again gets another
// generator.
func Example_objects() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "partita")
	orPanic(err)
	defer func() { orPanic(os.RemoveAll(dir)) }()
	const launch = 3
	for range 2 {
		store, err := bolt.Open(ctx, dir, shop(1), bolt.Options{Create: true})
		orPanic(err)
		objects, err := ids.NewDecimalGenerator(ctx, store, launch)
		orPanic(err)
		for range 2 {
			id, err := objects.Next(ctx)
			orPanic(err)
			fmt.Println(id)
		}
		orPanic(store.Close(ctx))
	}
	// Output:
	// 10000100003
	// 20000100003
	// 10000200003
	// 20000200003
}

func orPanic(err error) {
	if err != nil {
		panic(err)
	}
}
