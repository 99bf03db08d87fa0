package demo

import (
	"fmt"
	"time"

	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/table"
)

// introduce says what is going to happen.
func (l *load) introduce() {
	l.Tell("", "%s events of %d bytes, spread evenly over %s workspaces in %d partitions, by %s clients, into %s", human.Count(l.events), l.body,
		human.Count(l.workspaces), l.partitions, human.Count(l.clients), l.dir)
	if found := l.running.store.Stats().Events; found > 0 {
		l.Say("The store has %s events already.", human.Count(found))
	}
}

// tables shows the result.
func (l *load) tables(c *console) {
	r := &l.result
	t := table.New(table.Right("events/s"), table.Right("mean"), table.Right("p50"), table.Right("p90"), table.Right("p99"),
		table.Right("p99.9"), table.Right("max"), table.Right("events per sync"))
	t.Row(human.Number(r.PerSecond), time.Duration(r.Latency.Mean), time.Duration(r.Latency.P50), time.Duration(r.Latency.P90),
		time.Duration(r.Latency.P99), time.Duration(r.Latency.P999), time.Duration(r.Latency.Max),
		fmt.Sprintf("%.1f", float64(r.Events)/float64(max(r.Commits, 1))))
	c.Draw("Throughput, and the time from an event's first attempt until it is durable", t)
	c.Say("\n%s requests were refused for now and sent again, %s outcomes are unknown.", human.Count(r.Busy), human.Count(r.Unknown))
	c.Say("log.db %v, state.db %v", human.Bytes(r.Bytes.Log), human.Bytes(r.Bytes.State))
	c.printVerdict(r.Check)
	c.printCheck(r.consistent(), fmt.Sprintf("%s events were acknowledged, and the log has %s more than before",
		human.Count(r.Events), human.Count(r.InLog)))
	if r.Kept {
		c.Say("")
		c.Tell("", "The store stays in %s: demo replay --db %s --from-start", l.dir, l.dir)
	}
}
