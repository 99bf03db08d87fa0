package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/partita-go/partita/cluster"
	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/internal/console"
	"github.com/partita-go/partita/cmd/partita/internal/config"
)

func clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "cluster COMMAND", Short: "Look after the nodes of a cluster",
		Long: `Look after the nodes of a cluster: those that serve an application together, see
docs/cluster.md. Any node can be asked.`,
	}
	c.AddCommand(
		clusterStatusCommand(), clusterTransferCommand(), clusterCompareCommand(),
		clusterMemberCommand("add", "takes part", "Let a node take part that is new, or was removed", `Let a node take part that is new, and was started with --join, or that was
removed. All nodes must have been started with its name among --peers. It votes
when it has caught up, which is waited for as long as it comes nearer. If that
was interrupted, do it again.`),
		clusterMemberCommand("remove", "takes no part any more", "Take a node out of the cluster", `Take a node out of the cluster, for good or until it is added again: it votes no
more, and gets no more events. Stop it then. The node that leads cannot be
removed: transfer first.`),
	)
	return c
}

// nodeFlags say which server is asked.
func nodeFlags(set *pflag.FlagSet) (server func() (*serverKeeper, error)) {
	url := set.String("url", "http://"+config.DefaultListen, "where one of the nodes serves, `URL`")
	tokenFile := set.String("token-file", "", "`FILE` of the bearer token; or it is in the environment, as "+tokenVariable)
	return func() (*serverKeeper, error) {
		token, err := readToken(*tokenFile)
		if err != nil {
			return nil, err
		}
		return newServerKeeper(*url, token)
	}
}

// shardFlag says which shard is meant.
func shardFlag(c *cobra.Command, usage string) *pflag.Flag {
	c.Flags().Uint16("shard", 0, usage)
	return c.Flags().Lookup("shard")
}

// askNode lets a command ask a node.
func askNode(c *cobra.Command, ask func(context.Context, *serverKeeper, *console.Console) error) *cobra.Command {
	server := nodeFlags(c.Flags())
	asJSON := cli.JSON(c)
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		k, err := server()
		if err != nil {
			return err
		}
		defer k.client.CloseIdleConnections()
		return ask(ctx, k, console.New(s, *asJSON))
	})
	return c
}

// readCluster gets what a node tells of the cluster, beneath its path.
func (k *serverKeeper) readCluster(ctx context.Context, value any, path ...string) error {
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	return k.ask(ctx, http.MethodGet, k.base.JoinPath(append([]string{"v1", "cluster"}, path...)...), nil, value)
}

// changeCluster asks for a change, which is about the node that a member of the body names, in a shard, if one is given.
func (k *serverKeeper) changeCluster(ctx context.Context, change, member, node string, shard *pflag.Flag) error {
	members := map[string]any{member: node}
	if shard.Changed {
		members["shard"] = json.Number(shard.Value.String())
	}
	body, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return k.ask(ctx, http.MethodPost, k.base.JoinPath("v1", "cluster", change), body, nil)
}

// addNode lets a node take part. A server waits for some seconds until it has caught up: it is asked again as long as the node
// comes nearer.
func (k *serverKeeper) addNode(ctx context.Context, node string, shard *pflag.Flag) error {
	var before map[int]standing
	for tries := 1; ; tries++ {
		err := k.changeCluster(ctx, "add", "node", node, shard)
		if err == nil {
			return nil
		}
		var s cluster.StatusJSON
		if k.readCluster(ctx, &s) != nil {
			return err
		}
		now := standingsOf(s.Members, node, shard)
		votes := len(now) > 0
		for _, at := range now {
			votes = votes && at.votes
		}
		switch {
		case votes && tries > 1: // an answer was lost
			return nil
		case votes || !isNearer(now, before):
			return err
		}
		before = now
	}
}

// standing is where a node stands in a shard.
type standing struct {
	// head is how many entries it has, and most how many any node has.
	head, most uint64
	votes      bool
}

// standingsOf returns where a node stands in each shard that is meant and that it is in.
func standingsOf(members []cluster.NodeJSON, node string, shard *pflag.Flag) map[int]standing {
	all, most := make(map[int]standing), make(map[int]uint64)
	for i := range members {
		m := &members[i]
		most[m.Shard] = max(most[m.Shard], m.Head)
		if string(m.Node) == node && (!shard.Changed || shard.Value.String() == strconv.Itoa(m.Shard)) {
			all[m.Shard] = standing{head: m.Head, votes: m.Votes}
		}
	}
	for i, at := range all {
		at.most = most[i]
		all[i] = at
	}
	return all
}

// isNearer reports whether a node has come nearer in any shard than it was before, or than if it had nothing. In a shard where
// its turn has not come it falls behind meanwhile.
func isNearer(now, before map[int]standing) bool {
	for i, at := range now {
		was, known := before[i]
		if !known {
			was = standing{most: at.most}
		}
		if !was.votes && (at.votes || at.most-at.head < was.most-was.head) {
			return true
		}
	}
	return false
}

func clusterStatusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Show where the nodes stand",
		Long: `Show where the nodes stand: who leads, how many entries of the log each has, and
who is behind, or does not answer. The node that is asked asks the others. If
there are several shards, it shows that of each.`,
	}
	return askNode(c, func(ctx context.Context, k *serverKeeper, out *console.Console) error {
		result := &clusterResult{Command: "cluster status"}
		if err := k.readCluster(ctx, &result.StatusJSON); err != nil {
			return err
		}
		return out.Result(result, result.text)
	})
}

func clusterTransferCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "transfer --to NODE", Short: "Let another node lead",
		Long: `Let another node lead, which must have kept up: before the one that leads is
stopped for longer, or moved. Callers wait for some 100 ms. A server that is
stopped does that by itself.`,
	}
	node := cli.Required(c, "to", "the node that is to lead, `NODE`")
	shard := shardFlag(c, "the shard that it is to lead, `N`, which is needed if there are several")
	return askNode(c, func(ctx context.Context, k *serverKeeper, out *console.Console) error {
		result := &clusterTransferResult{Command: "cluster transfer", To: *node}
		if err := k.changeCluster(ctx, "transfer", "to", *node, shard); err != nil {
			return err
		}
		return out.Result(result, result.text)
	})
}

// clusterMemberCommand changes who is in the cluster. done says what the node does then.
func clusterMemberCommand(name, done, short, long string) *cobra.Command {
	c := &cobra.Command{Use: name + " --node NODE", Short: short, Long: long}
	node := cli.Required(c, "node", "the node, `NODE`")
	shard := shardFlag(c, "in shard `N` only (default all)")
	return askNode(c, func(ctx context.Context, k *serverKeeper, out *console.Console) error {
		result := &clusterMemberResult{Command: "cluster " + name, Node: *node, done: done}
		change := k.addNode
		if name != "add" {
			change = func(ctx context.Context, node string, shard *pflag.Flag) error {
				return k.changeCluster(ctx, name, "node", node, shard)
			}
		}
		if err := change(ctx, *node, shard); err != nil {
			return err
		}
		return out.Result(result, result.text)
	})
}

// clusterMemberResult says which node was added or removed, in the words of its JSON.
type clusterMemberResult struct {
	Command string `json:"command"`
	Node    string `json:"node"`
	done    string
}

func (r *clusterMemberResult) text(c *console.Console) { c.Say("node %s %s", r.Node, r.done) }

// errDiffer says that nodes do not have the same.
var errDiffer = errors.New("nodes differ")

func clusterCompareCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "compare", Short: "Compare what the nodes have",
		Long: `Compare what the nodes have, by the checksum of all entries of the log up to one
that all have which answer. It reads no store: for that, verify each. Status 1
if two differ.`,
	}
	return askNode(c, func(ctx context.Context, k *serverKeeper, out *console.Console) error {
		result := &clusterCompareResult{Command: "cluster compare"}
		if err := k.readCluster(ctx, &result.Comparison, "compare"); err != nil {
			return err
		}
		err := out.Result(result, result.text)
		if err == nil && !result.Same {
			return errDiffer
		}
		return err
	})
}

// clusterCompareResult says who has what, in the words of its JSON.
type clusterCompareResult struct {
	Command string `json:"command"`
	cluster.Comparison
}

func (r *clusterCompareResult) text(c *console.Console) {
	several := slices.ContainsFunc(r.Members, func(m cluster.PositionJSON) bool { return m.Shard > 0 })
	for i := range r.Members {
		m := &r.Members[i]
		if m.Unknown != "" {
			c.Say("%s%s was not compared: %s", inShard(several, m.Shard), m.Node, m.Unknown)
			continue
		}
		c.Say("%s%s has %s at entry %d", inShard(several, m.Shard), m.Node, m.Sum, m.Head)
	}
	switch {
	case r.Same && several:
		c.Say("%d nodes have the same of all shards", r.Compared)
	case r.Same:
		c.Say("%d nodes have the same up to entry %d", r.Compared, r.Head)
	}
}

// inShard begins a line, if there are several shards.
func inShard(several bool, shard int) string {
	if !several {
		return ""
	}
	return fmt.Sprintf("shard %d: ", shard)
}

// clusterTransferResult says who leads now, in the words of its JSON.
type clusterTransferResult struct {
	Command string `json:"command"`
	To      string `json:"to"`
}

func (r *clusterTransferResult) text(c *console.Console) { c.Say("node %s leads", r.To) }

// clusterResult says where the nodes stand, in the words of its JSON.
type clusterResult struct {
	Command string `json:"command"`
	cluster.StatusJSON
}

func (r *clusterResult) text(c *console.Console) {
	for i := range r.Members {
		m := &r.Members[i]
		role, shard := "follows "+string(m.Leader), inShard(r.Shards > 1, m.Shard)
		switch {
		case m.Unreachable != "":
			c.Say("%s%s at %s does not answer: %s", shard, m.Node, m.Address, m.Unreachable)
			continue
		case m.Stopped != "":
			role = "takes no part: " + m.Stopped
		case m.Serves:
			role = "leads"
		case m.Leader == m.Node:
			role = "is about to lead"
		case m.Leader == "":
			role = "hears no leader"
		}
		if !m.Votes {
			role += " without a vote"
		}
		if m.Preferred && !m.Serves {
			role += ", is preferred"
		}
		c.Say("%s%s at %s %s, has %d entries, %d behind", shard, m.Node, m.Address, role, m.Head, m.Behind)
		if m.Full != "" {
			c.Say("  %s%s has no room: %s", shard, m.Node, m.Full)
		}
		if m.Failed != "" {
			c.Say("  %s%s: %s", shard, m.Node, m.Failed)
		}
	}
}
