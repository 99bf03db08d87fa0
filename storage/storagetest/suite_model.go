package storagetest

import (
	"context"
	"errors"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
)

var modelChecks = []check{{"RandomOperationsAgreeWithModel", eachLevel, checkModel}}

// checkModel runs random operations against the store and the model, and
// compares all that can be read after each.
func checkModel(e *env) {
	rapid.Check(e, func(t *rapid.T) {
		e.parts = make(map[messages.PartitionID]*Partition)
		e.open()
		m := &machine{env: e, stale: make(map[messages.PartitionID]*Partition)}
		for id := range messages.PartitionID(e.desc.Partitions) {
			e.take(id)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":                m.same,
			"append":          m.append,
			"append taken":    m.appendTaken,
			"append stale":    m.appendStale,
			"append with gap": m.appendGap,
			"flush":           m.flush,
			"flush again":     m.flushAgain,
			"flush wrong":     m.flushWrong,
			"take epoch":      m.takeEpoch,
			"reopen":          m.reopen,
			"crash":           m.crash,
		})
		Verify(e, e.store)
		e.close()
	})
	e.store = nil
}

// machine is one run of random operations.
type machine struct {
	env   *env
	stale map[messages.PartitionID]*Partition
	last  *storage.Flush
}

func (m *machine) same(t *rapid.T) {
	got, err := observe(context.WithoutCancel(m.env.Context()), m.env.store, firstThree)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if diff := difference(got, m.env.model.observe(firstThree)); diff != "" {
		t.Fatalf("the store differs from the model: %s", diff)
	}
}

func (m *machine) partition(t *rapid.T) *Partition {
	return m.env.parts[rapid.Uint32Range(0, m.env.desc.Partitions-1).AsAny().Draw(t, "partition").(uint32)]
}

// specs draws a batch.
func (m *machine) specs(t *rapid.T, p *Partition) []Spec { return nil }

var _ = errors.Is
