package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/memory"
	"github.com/partita-go/partita/storage/replog/replogtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	replogtest.Run(t, func(testing.TB) replogtest.Cluster {
		return &cluster{Cluster: memory.NewCluster(1, nodes...)}
	})
}

var nodes = []replog.NodeID{"n1", "n2", "n3"}

// cluster is a memory's as the suite drives it.
type cluster struct{ *memory.Cluster }

func (c *cluster) Nodes() []replog.NodeID { return nodes }

func (c *cluster) Log(_ testing.TB, id replog.NodeID) replog.Log { return c.Cluster.Log(id) }

func (c *cluster) Elect(t testing.TB, id replog.NodeID) {
	if err := c.Lead(id); err != nil {
		t.Fatalf("node %s: lead: %v", id, err)
	}
}

func (c *cluster) Cut(_ testing.TB, id replog.NodeID)  { c.Cluster.Cut(id) }
func (c *cluster) Heal(_ testing.TB, id replog.NodeID) { c.Cluster.Heal(id) }

func (c *cluster) Doubt(_ testing.TB, id replog.NodeID, there bool) {
	fate := memory.Lost
	if there {
		fate = memory.Kept
	}
	c.Doom(id, fate)
}
