package tests

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// walFile is the write-ahead log, which an orderly close removes.
const walFile = "log.wal"

// The parts of log.wal, see docs/format.md: a block with a header, and sectors that begin with the
// first LSN of their commit.
const (
	walHeader = 55
	walBlock  = 4096
	walSector = 512
)

// killedSite is a damagedSite as a kill leaves it: log.wal has commits that log.db has not.
func killedSite(t testing.TB, workspaces, rounds int) (*site, truth) {
	t.Helper()
	s, was := damagedSite(t, workspaces, rounds)
	d := s.run(t)
	defer d.crash(t)
	for range 100 { // what is appended is soon brought to log.db
		for ws := range messages.WSID(workspaces) {
			must(commitRecord(limit(t), d.app, ws))(t)
		}
		before := s.contents(t)
		killed := s.copied(t)
		want, errs := readTruth(limit(t), d.store, workspaces)
		check(t, errors.Join(errs...))
		if !slices.Equal(before, s.contents(t)) {
			continue // it was written while it was copied
		}
		killed.tighten(t)
		if _, pending := killed.applied(t); pending >= uint64(workspaces) {
			want.named = was.named
			return killed, want
		}
	}
	t.Fatal("log.db had everything each time")
	return nil, truth{}
}

// applied returns the last LSN that log.db has, and how many events log.wal has beyond it.
func (s *site) applied(t testing.TB) (last, pending uint64) {
	t.Helper()
	store := openBolt(t, s.dir, s.app.Descriptor, bolt.Options{ReadOnly: true})
	in, err := store.Inspect(limit(t))
	check(t, errors.Join(err, store.Close(limit(t))))
	if in.WAL != nil {
		pending = in.WAL.Pending
	}
	return uint64(in.Events) - pending, pending
}

// mapWAL returns the regions of a site's log.wal. What log.db has not is certain to be found
// if it is damaged.
func mapWAL(t testing.TB, s *site) []region {
	t.Helper()
	content := must(os.ReadFile(s.path(walFile)))(t)
	applied, _ := s.applied(t)
	regions := []region{{walFile, "header/value", 0, walHeader}, {walFile, "unused", walHeader, walBlock - walHeader}}
	for at := walBlock; at < len(content); at += walSector {
		sector := content[at : at+walSector]
		kind := "commit/value"
		switch first := binary.BigEndian.Uint64(sector); {
		case bytes.Equal(sector, make([]byte, walSector)):
			kind = "unused"
		case first <= applied:
			kind = "in log.db"
		}
		regions = append(regions, region{walFile, kind, at, walSector})
	}
	return regions
}
