package ids_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/ids"
)

// counterUsedUp is the last number of a decimal id's counter.
const counterUsedUp = 922_337_202

func decimalID(counter, generator, launch uint64) ids.DecimalID {
	return ids.DecimalID(counter*10_000_000_000 + generator*100_000 + launch)
}

func TestParseDecimalID(t *testing.T) {
	for text, want := range map[string]ids.DecimalID{
		"420001700003":        decimalID(42, 17, 3),
		"10000100000":         decimalID(1, 1, 0),
		"9223372029999999999": decimalID(counterUsedUp, 99_999, 99_999),
	} {
		id, err := ids.ParseDecimalID(text)
		if err != nil || id != want || id.String() != text {
			t.Errorf("%s: got %v, %v, want %v", text, id, err, want)
		}
	}
	for _, text := range []string{
		"", "0", "1", "100001", "9999999999", "10000000000", "10000000001", "9223372030000100001", "9223372036854775807",
		"18446744073709551615", "010000100000", "+10000100000", "-10000100000", "10_000_100_000", " 10000100000", "1e11", "１0000100000",
	} {
		if id, err := ids.ParseDecimalID(text); !errors.Is(err, ids.ErrID) || id != 0 {
			t.Errorf("%q: got %v, %v, want ErrID", text, id, err)
		}
	}
}

func TestDecimalIDHasItsParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counter := rapid.Uint32Range(1, counterUsedUp).Draw(t, "counter")
		generator := rapid.Uint32Range(1, ids.MaxGenerator).Draw(t, "generator")
		launch := rapid.Uint32Range(0, ids.MaxLaunch).Draw(t, "launch")
		id := decimalID(uint64(counter), uint64(generator), uint64(launch))
		if err := id.Validate(); err != nil || id>>63 != 0 {
			t.Errorf("got %v, want an id of 63 bits", err)
		}
		if id.Counter() != counter || id.Generator() != generator || id.Launch() != launch {
			t.Errorf("got %d, %d and %d", id.Counter(), id.Generator(), id.Launch())
		}
		if got, err := ids.ParseDecimalID(id.String()); err != nil || got != id {
			t.Errorf("got %v, %v, want %v", got, err, id)
		}
		throughJSON(t, id)
	})
}

// Generators of a counter and a launch, one after the other or beside each other, have numbers of their own.
func TestDecimalGenerators(t *testing.T) {
	c := new(counter)
	for _, launch := range []uint32{3, 4} {
		for generator := range uint64(3) {
			g, err := ids.NewDecimalGenerator(t.Context(), c, launch)
			if err != nil {
				t.Fatal(err)
			}
			for n := range uint64(10) {
				id, err := g.Next(ended())
				if want := decimalID(n+1, generator+1, uint64(launch)); err != nil || id != want {
					t.Errorf("got %v, %v, want %v", id, err, want)
				}
			}
		}
	}
	g, err := ids.NewTestDecimalGenerator(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := g.Next(t.Context()); err != nil || id != decimalID(1, 1, 0) {
		t.Errorf("got %v, %v, want the first of launch 0", id, err)
	}
}

func TestBadLaunch(t *testing.T) {
	for _, launch := range []uint32{0, 100_000, 1<<32 - 1} {
		if g, err := ids.NewDecimalGenerator(t.Context(), new(counter), launch); !errors.Is(err, ids.ErrLaunch) || g != nil {
			t.Errorf("%d: got %v, %v, want ErrLaunch", launch, g, err)
		}
	}
}

// 99,999 generators can be had of a launch, and no more; of the next launch as many again.
func TestLaunchIsUsedUp(t *testing.T) {
	c := &counter{last: map[uint32]uint32{1: ids.MaxGenerator - 1}}
	g, err := ids.NewDecimalGenerator(t.Context(), c, 1)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := g.Next(t.Context()); err != nil || id != decimalID(1, 99_999, 1) {
		t.Errorf("got %v, %v, want the first of the last generator", id, err)
	}
	if g, err = ids.NewDecimalGenerator(t.Context(), c, 1); !errors.Is(err, ids.ErrLaunchUsedUp) || g != nil {
		t.Errorf("got %v, want ErrLaunchUsedUp", err)
	}
	if _, err = ids.NewDecimalGenerator(t.Context(), c, 2); err != nil {
		t.Error(err)
	}
}

// When the counter is used up, one of those who want an id takes another generator, and nothing is given out twice.
func TestDecimalCounterIsUsedUp(t *testing.T) {
	c := new(counter)
	g, err := ids.NewDecimalGenerator(t.Context(), c, 5)
	if err != nil {
		t.Fatal(err)
	}
	g.Skip(counterUsedUp - 1000)
	const takers, each = 8, 500
	all := make([][each]ids.DecimalID, takers)
	var wait sync.WaitGroup
	for taker := range takers {
		wait.Go(func() {
			for n := range each {
				id, err := g.Next(context.Background())
				if err != nil {
					t.Error(err)
				}
				all[taker][n] = id
			}
		})
	}
	wait.Wait()
	given := make(map[uint32]int) // by generator
	seen := make(map[ids.DecimalID]bool)
	for _, some := range all {
		for _, id := range some {
			if id.Validate() != nil || seen[id] {
				t.Errorf("got %v again, or it is no id", id)
			}
			seen[id] = true
			given[id.Generator()]++
		}
	}
	if given[1] != 1000 || given[2] != takers*each-1000 {
		t.Errorf("got %v, want 1000 of generator 1, the others of generator 2", given)
	}
}

// As long as no number of a generator can be had there is no id. Then it goes on.
func TestDecimalGeneratorTriesAgain(t *testing.T) {
	c := new(counter)
	g, err := ids.NewDecimalGenerator(t.Context(), c, 5)
	if err != nil {
		t.Fatal(err)
	}
	g.Skip(counterUsedUp - 1)
	if id, err := g.Next(t.Context()); err != nil || id != decimalID(counterUsedUp, 1, 5) {
		t.Errorf("got %v, %v, want the generator's last", id, err)
	}
	c.err = errors.New("disk on fire")
	for range 2 {
		if id, err := g.Next(t.Context()); !errors.Is(err, c.err) || id != 0 {
			t.Errorf("got %v, %v, want %v", id, err, c.err)
		}
	}
	c.err = nil
	if id, err := g.Next(t.Context()); err != nil || id != decimalID(1, 2, 5) {
		t.Errorf("got %v, %v, want the first of generator 2", id, err)
	}
}

// stuck is a counter that answers when the context of whoever asks ends.
type stuck struct{ counter }

func (s *stuck) NextGenerator(ctx context.Context, launch uint32) (uint32, error) {
	if launch == 5 && s.last[5] == 1 {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}
	return s.counter.NextGenerator(ctx, launch)
}

// Who waits for somebody else who takes a number waits no longer than its context lets it.
func TestWaitForAnotherTakerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := ids.NewDecimalGenerator(t.Context(), new(stuck), 5)
		if err != nil {
			t.Fatal(err)
		}
		g.Skip(counterUsedUp)
		long, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wait sync.WaitGroup
		wait.Go(func() { _, _ = g.Next(long) })
		synctest.Wait()
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		before := time.Now()
		if _, err := g.Next(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != time.Second {
			t.Errorf("got %v after %v, want the deadline after 1s", err, time.Since(before))
		}
		wait.Wait()
	})
}
