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
			submit: func(m *mutant, b storage.Batch, done func(error)) func(context.Context) error {
				err := m.Memory.Append(context.Background(), b)
				done(err)
				done(err)
				return nil
			}},
		{name: "a submitted batch is answered and never written", by: []string{by},
			submit: func(_ *mutant, _ storage.Batch, done func(error)) func(context.Context) error {
				done(nil)
				return nil
			}},
		{name: "a submitted batch is answered and not taken", by: []string{by},
			submit: func(_ *mutant, _ storage.Batch, done func(error)) func(context.Context) error {
				done(storage.ErrFull)
				return func(context.Context) error { return storage.ErrFull }
			}},
		{name: "no batch is taken", by: []string{by},
			submit: func(m *mutant, b storage.Batch, done func(error)) func(context.Context) error {
				return func(ctx context.Context) error {
					err := m.Memory.Append(ctx, b)
					if err == nil {
						done(nil)
					}
					return err
				}
			}},
		{name: "the rest of a batch is refused and answered", by: []string{by},
			submit: func(m *mutant, b storage.Batch, done func(error)) func(context.Context) error {
				err := m.Memory.Append(context.Background(), b)
				if err == nil {
					done(nil)
					return nil
				}
				return func(context.Context) error {
					done(err)
					return err
				}
			}},
		{name: "a submitted batch is forgotten when the store closes", by: []string{by},
			submit: func(m *mutant, b storage.Batch, done func(error)) func(context.Context) error {
				if err := m.Memory.Append(context.Background(), b); !errors.Is(err, storage.ErrClosed) {
					done(err)
				}
				return nil
			}},
		{name: "an old epoch is good enough for a submitted batch", by: []string{by},
			submit: func(m *mutant, b storage.Batch, done func(error)) func(context.Context) error {
				r, err := m.Memory.Register(context.Background(), b.Partition)
				if err == nil {
					b.Epoch = r.Epoch
					for i := range b.Events {
						b.Events[i].Epoch = r.Epoch
					}
					err = m.Memory.Append(context.Background(), b)
				}
				done(err)
				return nil
			}},
	}
}
