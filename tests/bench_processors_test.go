package tests

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

// BenchmarkCommandProcessors shows that partitions of one store share commits.
// Bars: 32 on 8 partitions at least 3 times the events/s of 1 on 1, and not slower than 8 on 8.
func BenchmarkCommandProcessors(b *testing.B) {
	for _, c := range []struct{ processors, partitions int }{{1, 1}, {8, 8}, {32, 8}} {
		b.Run(fmt.Sprintf("processors=%d/partitions=%d", c.processors, c.partitions), func(b *testing.B) {
			benchmarkProcessors(b, c.processors, uint32(c.partitions))
		})
	}
}

func benchmarkProcessors(b *testing.B, processors int, partitions uint32) {
	descriptor := shop(partitions)
	d := deploy(b, partition.Application{Descriptor: descriptor}, openBolt(b, b.TempDir(), descriptor, bolt.Options{}), partition.Options{})
	all := make([]*partition.CommandProcessor, processors)
	for i := range all {
		all[i] = must(d.app.SpawnCommandProcessor(invoice))(b)
	}
	var next atomic.Int64
	var running sync.WaitGroup
	b.ResetTimer()
	for _, p := range all {
		running.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				_, err := p.Execute(context.Background(), messages.Command{
					Workspace:  messages.WSID(n % 1000),
					Kind:       kindShop,
					RawRecords: []messages.RawRecord{{ID: 1}},
					Body:       make([]byte, 300),
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	d.stop(b)
}

// invoice gives one number and writes one record.
func invoice(ctx context.Context, c *partition.CommandContext) error {
	if _, err := c.Next(ctx, seqInvoice); err != nil {
		return err
	}
	id, err := c.ID(1)
	if err != nil {
		return err
	}
	return c.Insert(ctx, id, make([]byte, 100))
}
