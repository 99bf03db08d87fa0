// Package cluster runs an application on several nodes: what is acknowledged is on the disks of most of them, and if any one
// of them dies, another one goes on. docs/cluster.md tells what is promised.
//
//	node, err := cluster.Start(ctx, cluster.Options{
//		Node: "n1", Peers: map[replog.NodeID]string{"n1": "127.0.0.1:7431", "n2": "127.0.0.1:7432", "n3": "127.0.0.1:7433"},
//		Dir: dir, Create: true, Application: partition.Application{Descriptor: descriptor},
//	})
//	done, err := node.Append(ctx, to, draft) // at any node
//	app, err := node.App()                   // at the node that leads
//	err = node.Close(ctx)
//
// One node leads. It owns all partitions, and so takes all appends, its own and those that others forward: more nodes are
// for when one dies, and for reads of what each has. With Options.Shards that is so of each shard by itself: several nodes own
// partitions, and take appends. The log is package raftlog's, so a program that imports this package links hashicorp/raft.
//
//	options.go    Options
//	node.go       Node: Start, Close
//	shard.go      Shard: what a node has of some partitions
//	shards.go     which shards there are
//	place.go      the preferred node of a shard leads it
//	reign.go      the application runs while this node leads
//	room.go       a node without room lets another one lead
//	part.go       its part of the log, and its store
//	mend.go       a node that has stopped takes part again
//	members.go    nodes are added and removed
//	compare.go    whether all nodes have the same
//	append.go     Append and AppendAll, at any node
//	generators.go NextGenerator, at any node
//	pursue.go     trying until the owner has answered, whoever that is
//	peers.go      what nodes ask each other
//	handler.go    HTTP at any node
//	forward.go    requests that the owner answers
//	everything.go requests about all shards
//	gather.go     what all owners answer
//	merge.go      pages and subscriptions of all shards
//	union.go      what a node has of all shards, to be read
//	status.go     what a node knows of itself
//
// # Between nodes
//
// Nodes ask each other over HTTP, through streams of the same port and TLS as the log's: with the bodies, errors and rules of
// packages httpapi and httpclient. That is one codec less than messages of actors over gRPC would be, and seven modules, and
// its connections are bounded where those have queues of a million messages without backpressure. It is slower: a third of
// the requests a second. Callers at the owner do not pass there.
package cluster
