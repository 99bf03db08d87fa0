package partition_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// Four command processors behind one handle: the commands of a workspace keep their order, also when the group grows.
func ExampleApp_SpawnGroup() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	group, err := app.SpawnGroup(partition.GroupConfig{
		Name:    "invoices",
		Members: 4,
		Drafter: func(_ context.Context, d *partition.DraftContext) error {
			d.Want(invoices)
			return nil
		},
	})
	check(err)

	for tenant := messages.WSID(1); tenant <= 3; tenant++ {
		check(group.Tell(ctx, messages.Command{Workspace: tenant, Kind: shop, Body: []byte("an invoice")})) // nobody waits
		done, err := group.Ask(ctx, messages.Command{Workspace: tenant, Kind: shop, Body: []byte("another one")})
		check(err)
		fmt.Printf("tenant %d, at member %d: invoice %d\n", tenant, group.MemberOf(tenant), done.Numbers[0].Number)
	}
	check(group.Resize(ctx, 8))
	done, err := group.TryAsk(ctx, messages.Command{Workspace: 3, Kind: shop})
	check(err)
	fmt.Printf("tenant 3, of %d members: invoice %d\n", group.Members(), done.Numbers[0].Number)
	// Output:
	// tenant 1, at member 0: invoice 2
	// tenant 2, at member 3: invoice 2
	// tenant 3, at member 3: invoice 2
	// tenant 3, of 8 members: invoice 3
}

// A router of your own chooses by what it likes: one member, several, all, or none.
func ExampleRouter() {
	ctx := context.Background()
	app, end := deployed(ctx)
	defer end()
	group, err := app.SpawnGroup(partition.GroupConfig{
		Name:    "priorities",
		Members: 3,
		Router: func(c *messages.Command, members int) partition.Route {
			switch string(c.Body) {
			case "urgent": // never behind others
				return partition.ToMembers(0)
			case "audit":
				return partition.ToAll()
			case "":
				return partition.ToNone()
			}
			return partition.ToMembers(1 + int(c.Workspace)%(members-1))
		},
		Drafter: func(context.Context, *partition.DraftContext) error { return nil },
	})
	check(err)

	command := messages.Command{Workspace: 7, Kind: shop}
	_, err = group.Ask(ctx, command)
	fmt.Println(errors.Is(err, partition.ErrNoMember))
	command.Body = []byte("audit")
	answers := 0
	for member, outcome := range group.AskEach(ctx, command) { // as they come
		if outcome.Err != nil {
			fmt.Println("member", member, "has refused:", outcome.Err)
		}
		answers++
	}
	fmt.Println(answers, "members have answered")
	// Output:
	// true
	// 3 members have answered
}
