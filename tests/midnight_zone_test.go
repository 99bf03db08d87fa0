package tests

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"go/build"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

// replayChildEnv holds a replayConfig. If it is set, the test binary is a process that replays a store.
const replayChildEnv = "PARTITA_REPLAY_CHILD"

// replayConfig says what is replayed, and which UTC offset the zone shall have at an instant, so that the process
// has the zone database that it was meant to have.
type replayConfig struct {
	Dir, Zone string
	At        time.Time
	Offset    int
}

// otherZone has another date than those of the tests nearly all day: it is 14 hours ahead of UTC.
const otherZone, otherOffset = "Pacific/Kiritimati", 14 * 60 * 60

// replayedUnderOtherZones replays the tail of the log, and rebuilds state.db from the whole log, in processes to which the
// zone's name means another zone: nothing differs.
func (m *midnight) replayedUnderOtherZones(t *testing.T) {
	t.Helper()
	_, offset := m.end.In(must(time.LoadLocation(m.zone))(t)).Zone()
	database := otherDatabase(t, m.zone)
	for _, rebuilt := range []bool{false, true} {
		own := m.replayed(t, rebuilt, replayConfig{Zone: m.zone, At: m.end, Offset: offset}, os.Getenv("ZONEINFO"))
		other := m.replayed(t, rebuilt, replayConfig{Zone: m.zone, At: m.end, Offset: otherOffset}, database)
		if own != other {
			t.Errorf("rebuilt %v: got %s\nunder another zone database, want\n%s", rebuilt, other, own)
		}
		for _, date := range []string{m.before.String(), m.date.String(), m.after.String()} {
			if !strings.Contains(own, date) {
				t.Errorf("rebuilt %v: got nothing of %v in\n%s", rebuilt, date, own)
			}
		}
	}
}

// otherDatabase is a zone database in which a zone has the rules of another one.
func otherDatabase(t *testing.T, zone string) string {
	t.Helper()
	dir := t.TempDir()
	z := must(zip.OpenReader(filepath.Join(build.Default.GOROOT, "lib", "time", "zoneinfo.zip")))(t)
	defer func() { check(t, z.Close()) }()
	rules := must(z.Open(otherZone))(t)
	file := filepath.Join(dir, filepath.FromSlash(zone))
	check(t, os.MkdirAll(filepath.Dir(file), 0o700))
	check(t, os.WriteFile(file, must(io.ReadAll(rules))(t), 0o600))
	return dir
}

// replayed returns what a process says that replays a copy of the store, and what it has left in state.db, which is
// right.
func (m *midnight) replayed(t *testing.T, rebuilt bool, config replayConfig, database string) string {
	t.Helper()
	s := m.at(filepath.Join(t.TempDir(), "copy"))
	check(t, os.CopyFS(s.dir, os.DirFS(m.dir)))
	if rebuilt {
		s.deleteState(t)
	}
	config.Dir = s.dir
	child := exec.Command(must(filepath.Abs(os.Args[0]))(t))
	child.Env = append(os.Environ(), replayChildEnv+"="+string(must(json.Marshal(config))(t)), "ZONEINFO="+database)
	var said, failed bytes.Buffer
	child.Stdout, child.Stderr = &said, &failed
	if err := child.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &failed)
	}
	s.look(t, nil)
	return fmt.Sprintf("%sstate.db %s\n", &said, contentsOf(t, s.path("state.db")))
}

// contentsOf sums up all keys and values of a bbolt file.
func contentsOf(t *testing.T, path string) string {
	t.Helper()
	db := must(bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true}))(t)
	defer func() { check(t, db.Close()) }()
	sum := sha256.New()
	check(t, db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				_, err := fmt.Fprintf(sum, "%s %x %x\n", name, k, v)
				return err
			})
		})
	}))
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// runReplayChild replays a store and dumps it.
func runReplayChild(text string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var c replayConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	loc, err := time.LoadLocation(c.Zone)
	if err != nil {
		return err
	}
	if _, offset := c.At.In(loc).Zone(); offset != c.Offset {
		return fmt.Errorf("%s at %v: got offset %d, want %d", c.Zone, c.At, offset, c.Offset)
	}
	store, err := bolt.Open(ctx, c.Dir, midnightShop(c.Zone), bolt.Options{Create: true})
	if err != nil {
		return err
	}
	parts := partition.NewAppParts(system, partition.Options{})
	app, err := parts.Deploy(ctx, partition.Application{WorkspaceZero: true, Descriptor: midnightShop(c.Zone)}, store)
	if err != nil {
		return err
	}
	if err := app.Ready(ctx); err != nil {
		return err
	}
	if err := parts.Close(ctx); err != nil {
		return err
	}
	if err := dumpPeriods(ctx, store, out); err != nil {
		return err
	}
	return store.Close(ctx)
}

// dumpPeriods writes the last numbers of all periods that the logs have, and sums of the logs.
func dumpPeriods(ctx context.Context, store storage.Store, out io.Writer) error {
	for ws := range messages.WSID(midnightWorkspaces) {
		sum, seen := sha256.New(), make(map[messages.SequencePeriod]bool)
		var periods []messages.SequencePeriod
		for e, err := range store.WLog(ctx, ws, 1) {
			if err != nil {
				return err
			}
			if err := json.NewEncoder(sum).Encode(e); err != nil {
				return err
			}
			for _, n := range e.Numbers {
				if p := n.SequencePeriod(); p.Period != 0 && !seen[p] {
					seen[p] = true
					periods = append(periods, p)
				}
			}
		}
		numbers, err := store.Numbers(ctx, ws, periods...)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%d: %x %+v\n", ws, sum.Sum(nil), numbers); err != nil {
			return err
		}
	}
	return nil
}
