package soak

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The application that is deployed.
const (
	partitions = 64
	workspaces = 10_000
	kindShop   = messages.WSKind(1)
	seqInvoice = messages.SeqID(16)
	seqReceipt = messages.SeqID(17)
	seqVoucher = messages.SeqID(18)
	// vouchers is how many a workspace has: those that are asked for most use them up.
	vouchers = 5
)

var shop = messages.Descriptor{
	Application: "soak", Partitions: partitions,
	Kinds: []messages.Kind{{ID: kindShop, Name: "shop", Sequences: []messages.Sequence{
		{ID: seqInvoice, Name: "Invoice", Initial: 1},
		{ID: seqReceipt, Name: "Receipt", Initial: 1000},
		{ID: seqVoucher, Name: "Voucher", Initial: 1, Largest: vouchers},
	}}},
}

// The clients, by what they do.
const (
	appenders    = 256
	drafters     = 8
	processors   = 16
	transactions = 8
	readers      = 4
)

// system is one for all deployments: what it keeps of one that has ended is seen.
var system = quiet.NewSystem()

// warm lets the actor system take the memory that it takes for good: each of the maps of
// its registry, 32 times 1,024, keeps the room of its first entry.
func warm() {
	registry := system.ProcessRegistry
	for range 12 * 32 * 1024 {
		pid, _ := registry.Add(system.DeadLetter, registry.NextId())
		registry.Remove(pid)
	}
}

// registered counts the processes that the actor system knows.
func registered() (n int64) {
	for _, bucket := range system.ProcessRegistry.LocalPIDs.LocalPIDs {
		n += int64(bucket.Count())
	}
	return n
}

// plan is how long and where a soak runs.
type plan struct {
	// time is how long the load lasts, not counting the checks in between.
	time time.Duration
	// sample is how often is looked at what may grow.
	sample time.Duration
	// disk is how large the files of a store may become, in bytes; then they are checked
	// and another store is begun.
	disk int64
	dir  string
	out  string // a file for the samples; empty: none
	seed uint64
	// unit is what the pace of undeployments and faults is measured in.
	unit time.Duration
}

// judged is the shortest load whose memory is judged: caches fill meanwhile.
const judged = time.Minute

// stores is how many stores a load is spread over at least, so that each quarter of it
// has a whole one.
const stores = 8

// planned reads a plan from the environment. Without one the load is short.
func planned(t *testing.T) plan {
	t.Helper()
	p := plan{
		time: 2 * time.Second, disk: int64(number(t, "SOAK_DISK", 4<<30)), dir: os.Getenv("SOAK_DIR"), out: os.Getenv("SOAK_OUT"),
		seed: number(t, "SOAK_SEED", uint64(time.Now().UnixNano()%1_000_000)),
	}
	if text := os.Getenv("SOAK_TIME"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			t.Fatalf("SOAK_TIME: got %q, want a duration like 1h", text)
		}
		p.time = d
	}
	p.unit = min(max(p.time/600, 20*time.Millisecond), time.Second)
	p.sample = min(max(p.time/200, 20*time.Millisecond), 10*time.Second)
	if p.dir == "" {
		p.dir = t.TempDir()
	}
	return p
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bounded bounds what must not hang; the limit is far above what anything takes.
func bounded(do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return do(ctx)
}
