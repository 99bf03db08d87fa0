package cluster_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/partita-go/partita/cluster"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/replog"
)

// One node alone is a cluster, too: with three, two of which must live, each program names the same peers.
func ExampleStart() {
	const shop, invoices = 1, 16
	dir, err := os.MkdirTemp("", "cluster")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	node, err := cluster.Start(ctx, cluster.Options{
		Node:  "n1",
		Peers: map[replog.NodeID]string{"n1": "127.0.0.1:0"},
		Dir:   dir, Create: true,
		Application: partition.Application{Descriptor: messages.Descriptor{
			Application: "shops", Partitions: 4, Kinds: []messages.Kind{{ID: shop, Name: "shop", Sequences: []messages.Sequence{
				{ID: invoices, Name: "invoice", Initial: 1},
			}}},
		}},
	})
	if err != nil {
		panic(err)
	}
	done, err := node.Append(ctx, partition.AppendTo{Workspace: 42, Kind: shop}, partition.Draft{
		Wanted: []partition.Wanted{{Seq: invoices}}, Body: []byte(`{"total": 12}`),
	})
	if err != nil {
		panic(err)
	}
	fmt.Println("invoice", done.Numbers[0].Number)
	if err := node.Close(ctx); err != nil {
		panic(err)
	}
	// Output: invoice 1
}
