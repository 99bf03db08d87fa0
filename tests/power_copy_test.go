package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/tests/internal/powerloss"
)

// copyChildEnv holds a copyConfig. If it is set, the test binary is a process that makes a copy.
const copyChildEnv = "PARTITA_TEST_COPY"

// copyConfig is what copy is made, of what, and where.
type copyConfig struct{ Kind, From, To string }

// copied is what a child writes when the copy is made.
const copied = "copied"

// runCopyChild makes a copy, and says so.
func runCopyChild(config string) int {
	var c copyConfig
	err := json.Unmarshal([]byte(config), &c)
	if err == nil {
		err = c.run(context.Background())
	}
	if err == nil {
		_, err = fmt.Fprintln(os.Stdout, copied)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (c *copyConfig) run(ctx context.Context) error {
	o := bolt.CopyOptions{SkipVerify: true} // it only reads
	switch c.Kind {
	case "backup":
		s, err := bolt.OpenExisting(ctx, c.From, bolt.Options{})
		if err != nil {
			return err
		}
		if _, err := s.Backup(ctx, c.To, o); err != nil {
			return err
		}
		return s.Close(ctx)
	case "compact":
		_, err := bolt.Compact(ctx, c.From, c.To, o)
		return err
	case "restore":
		_, err := bolt.Restore(ctx, c.From, c.To, o)
		return err
	}
	return fmt.Errorf("got a copy of kind %q, want backup, compact or restore", c.Kind)
}

// TestPowerLossOfCopies records how copies are made. From where a copy may have its name on, a
// loss of power takes nothing of it; and when it is said to be made, not its name either.
func TestPowerLossOfCopies(t *testing.T) {
	t.Parallel()
	needStrace(t)
	from := newSite(t, 4, partition.Settings{})
	events := from.fill(t)
	for _, kind := range []string{"backup", "compact", "restore"} {
		t.Run(kind, func(t *testing.T) {
			to := filepath.Join(scratch(t), "deep", "copy")
			p := recordCopy(t, copyConfig{Kind: kind, From: from.dir, To: to})
			for _, unsafe := range p.Unsafe() {
				t.Error(unsafe)
			}
			if len(p.Lines) != 1 || string(p.Lines[0].Text) != copied {
				t.Fatalf("got %d lines, want one, which is %q", len(p.Lines), copied)
			}
			for _, name := range p.Losable(p.Lines[0].Place) {
				t.Errorf("the copy is said to be made, and a loss of power may take %s", name)
			}
			image := scratch(t)
			must(p.Named().Write(image, rand.New(rand.NewPCG(1, 2))))(t)
			for _, dir := range []string{image, to} {
				from.at(dir).holds(t, events)
			}
		})
	}
}

// fill makes a store whose files all have something, and returns its events.
func (s *site) fill(t testing.TB) []messages.Event {
	t.Helper()
	store := openBolt(t, s.dir, s.app.Descriptor, wideTail)
	newHistory(t, store, 100).write(t, 3000)
	check(t, store.PutSubscription(limit(t), storage.Subscription{Name: "reader"}))
	events := copiedEvents(t, store)
	check(t, store.Close(limit(t)))
	s.look(t, nil)
	return events
}

func copiedEvents(t testing.TB, store *bolt.Store) (events []messages.Event) {
	t.Helper()
	for e, err := range store.Log(limit(t), 1) {
		check(t, err)
		events = append(events, e)
	}
	return events
}

// holds makes sure that a store is whole, and has these events and the subscription.
func (s *site) holds(t testing.TB, events []messages.Event) {
	t.Helper()
	verifyFiles(t, s.dir)
	store := must(bolt.OpenExisting(limit(t), s.dir, bolt.Options{ReadOnly: true}))(t)
	defer func() { check(t, store.Close(limit(t))) }()
	if got := copiedEvents(t, store); !reflect.DeepEqual(got, events) {
		t.Errorf("%s: got %d events, want the %d of its source", s.dir, len(got), len(events))
	}
	if _, err := store.Subscription(limit(t), "reader"); err != nil {
		t.Errorf("%s: %v", s.dir, err)
	}
}

// recordCopy lets a child make a copy under strace.
func recordCopy(t *testing.T, config copyConfig) *powerloss.Publication {
	t.Helper()
	const stdout = 1
	trace := filepath.Join(scratch(t), "trace")
	cmd := exec.CommandContext(limit(t), must(os.Executable())(t))
	cmd.Env = append(os.Environ(), copyChildEnv+"="+string(must(json.Marshal(config))(t)))
	if out, err := under(t, cmd, powerloss.Flags(trace)).CombinedOutput(); err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	f := must(os.Open(trace))(t)
	calls, err := powerloss.ReadTrace(f)
	check(t, f.Close())
	check(t, err)
	return must(powerloss.NewPublication(calls, config.To, stdout))(t)
}
