package storagetest

import (
	"context"
	"errors"

	"github.com/partita-go/partita/storage"
)

func submitBugs() []bug {
	const by = "SubmitAnswersOnce"
	return []bug{
		{name: "a submitted batch is answered twice", by: []string{by},
			submit: func(m *mutant, b storage.Batch, done func(error)) bool {
				err := m.Memory.Append(context.Background(), b)
				done(err)
				done(err)
				return true
			}},
		{name: "a submitted batch is answered and never written", by: []string{by},
			submit: func(_ *mutant, _ storage.Batch, done func(error)) bool {
				done(nil)
				return true
			}},
		{name: "a submitted batch is answered and not taken", by: []string{by},
			submit: func(_ *mutant, _ storage.Batch, done func(error)) bool {
				done(storage.ErrFull)
				return false
			}},
		{name: "no batch is taken", by: []string{by},
			submit: func(*mutant, storage.Batch, func(error)) bool { return false }},
		{name: "a submitted batch is forgotten when the store closes", by: []string{by},
			submit: func(m *mutant, b storage.Batch, done func(error)) bool {
				if err := m.Memory.Append(context.Background(), b); !errors.Is(err, storage.ErrClosed) {
					done(err)
				}
				return true
			}},
		{name: "an old epoch is good enough for a submitted batch", by: []string{by},
			submit: func(m *mutant, b storage.Batch, done func(error)) bool {
				r, err := m.Memory.Register(context.Background(), b.Partition)
				if err == nil {
					b.Epoch = r.Epoch
					for i := range b.Events {
						b.Events[i].Epoch = r.Epoch
					}
					err = m.Memory.Append(context.Background(), b)
				}
				done(err)
				return true
			}},
	}
}
