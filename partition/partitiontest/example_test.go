package partitiontest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/actors/actorstest"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/partition/partitiontest"
)

// These tests are written as the author of an invoicing service would write them.

const (
	shop     messages.WSKind = 1
	invoices messages.SeqID  = 16
	tenant   messages.WSID   = 7
)

// billing is the service's application: invoices restart each year, in Zurich.
var billing = partition.Application{Descriptor: messages.Descriptor{
	Application: "billing", Partitions: 2,
	Kinds: []messages.Kind{{ID: shop, Name: "shop", Sequences: []messages.Sequence{{
		ID: invoices, Name: "Invoice", Initial: 1,
		Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year}, Zone: "Europe/Zurich"},
	}}}},
}}

var (
	to      = partition.AppendTo{Workspace: tenant, Kind: shop}
	invoice = partition.Draft{Wanted: []partition.Wanted{{Seq: invoices}}, Body: []byte("an invoice")}
)

// of is a year of the invoices.
func of(year int) messages.SequencePeriod {
	return messages.SequencePeriod{Seq: invoices, Period: calendar.Date(year*10000 + 101)}
}

func TestInvoicesBeginAgainAtNewYear(t *testing.T) {
	app := partitiontest.Deploy(t, billing, partitiontest.Options{Now: time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC)})
	app.Append(to, invoice)
	app.Clock.AdvanceTo(time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC))
	app.Append(to, invoice)
	app.Crash()
	app.Restart()
	app.Append(to, invoice)
	app.AssertNumbers(tenant, of(2026), 1, 1)
	app.AssertNumbers(tenant, of(2027), 1, 2)
}

// service is what is tested: it issues invoices.
type service struct{ app *partition.App }

// issue issues the invoice of an order and returns its number. It tries again while that can help: the order's id
// keeps it from billing twice.
func (s service) issue(ctx context.Context, order partition.DedupID) (messages.Number, error) {
	sequencer, err := s.app.SequencerOf(tenant)
	if err != nil {
		return 0, err
	}
	for {
		done, err := sequencer.Append(ctx,
			partition.AppendTo{Workspace: tenant, Kind: shop, DedupID: order},
			partition.Draft{Wanted: []partition.Wanted{{Seq: invoices}}, Body: order[:]})
		var busy *partition.BusyError
		switch {
		case err == nil:
			return done.Numbers[0].Number, nil
		case !errors.As(err, &busy) || busy.RetryAfter == 0:
			return 0, err
		}
		select {
		case <-time.After(busy.RetryAfter):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// mustIssue issues an invoice, which must succeed.
func (s service) mustIssue(t *testing.T, order partition.DedupID) messages.Number {
	t.Helper()
	n, err := s.issue(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// deploy deploys the service. What it returns is the service as it runs, also after a restart.
func deploy(t *testing.T, now time.Time) (*partitiontest.App, *service) {
	s := &service{}
	app := partitiontest.Deploy(t, billing, partitiontest.Options{
		Now:   now,
		Start: func(_ context.Context, app *partition.App) error { s.app = app; return nil },
	})
	return app, s
}

// Midnight is that of the zone, to the second.
func TestServiceAtNewYear(t *testing.T) {
	app, service := deploy(t, time.Date(2026, 12, 31, 22, 59, 59, 0, time.UTC)) // 23:59:59 in Zurich
	service.mustIssue(t, partition.DedupID{1})
	service.mustIssue(t, partition.DedupID{2})
	app.Clock.Advance(time.Second)
	service.mustIssue(t, partition.DedupID{3})
	app.Crash()
	app.Restart()
	service.mustIssue(t, partition.DedupID{4})

	app.AssertNumbers(tenant, of(2026), 1, 2)
	app.AssertNumbers(tenant, of(2027), 1, 2)
	app.AssertGapless()
}

// The process dies in the middle of the write. Nobody knows whether the invoice is there, and the client tries again.
func TestRetryAfterAnUnknownOutcomeBillsOnce(t *testing.T) {
	for _, fate := range []partitiontest.Fate{partitiontest.Written, partitiontest.Lost} {
		t.Run(fate.String(), func(t *testing.T) {
			app, service := deploy(t, time.Time{})
			app.CrashInNextWrite(fate)
			if _, err := service.issue(t.Context(), partition.DedupID{1}); !errors.Is(err, partition.ErrOutcomeUnknown) {
				t.Fatalf("got error %v, want an unknown outcome", err)
			}
			app.Restart()
			if n := service.mustIssue(t, partition.DedupID{1}); n != 1 {
				t.Errorf("got invoice %d, want 1", n)
			}
			app.AssertNumbers(tenant, of(2026), 1, 1)
		})
	}
}

func TestBackpressureIsWaitedFor(t *testing.T) {
	app, service := deploy(t, time.Time{})
	busy := app.Busy(3)
	service.mustIssue(t, partition.DedupID{1})
	if n := busy.Injected(); n != 3 {
		t.Errorf("got %d times busy, want 3", n)
	}
	app.AssertNumbers(tenant, of(2026), 1, 1)
}

// post sends the mails of invoices, and dies with the first one.
type post struct {
	mu   sync.Mutex
	sent []partition.DedupID
}

func (p *post) send(ctx context.Context, d partition.Delivery) error {
	p.mu.Lock()
	p.sent = append(p.sent, d.Events[0].DedupID)
	first := len(p.sent) == 1
	p.mu.Unlock()
	if first {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (p *post) mails() []partition.DedupID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// A mail is out when the process dies, and nobody has noted it: it goes out again, under the same id.
func TestMailsAreSentAgainAfterACrash(t *testing.T) {
	p := &post{}
	app := partitiontest.Deploy(t, billing, partitiontest.Options{
		Start: func(ctx context.Context, app *partition.App) error {
			_, err := app.Subscribe(ctx, partition.SubscriptionConfig{Name: "mails", Batch: 1, Handler: p.send})
			return err
		},
	})
	app.Append(to, invoice)
	app.Await("a mail", func() bool { return len(p.mails()) == 1 })
	app.Crash()
	app.Restart()
	app.Await("the mail again", func() bool { return len(p.mails()) == 2 })
	if sent := p.mails(); sent[0] != sent[1] {
		t.Errorf("got mails %x, want the same one twice", sent)
	}
}

// An actor of the service's own opens transactions by message. Here the test is that actor, and dies with a transaction
// open: the next one gets its number.
func TestOwnerThatDiesTakesNoNumber(t *testing.T) {
	app, service := deploy(t, time.Time{})
	sequencer, err := app.SequencerOf(tenant)
	if err != nil {
		t.Fatal(err)
	}
	owner := app.Probe()
	owner.Send(sequencer.PID(), &messages.Start{Workspace: tenant, Kind: shop, WatchOwner: true})
	started := actorstest.Expect[*messages.Started](owner)
	owner.Send(sequencer.PID(), &messages.Next{Token: started.Token, Seq: invoices})
	if given := actorstest.Expect[*messages.Given](owner); given.Number != 1 {
		t.Errorf("got number %d, want 1", given.Number)
	}
	owner.Stop()
	service.mustIssue(t, partition.DedupID{1})
	app.AssertNumbers(tenant, of(2026), 1, 1)
}
