package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

// ownGroup is the group of what the server does besides the actors, in /v1/status.
const ownGroup = "server"

// Scrubbing says how the store is scrubbed: a copy of it is made and checked, as `partita backup` and `partita verify`
// do, so that damage is found before somebody needs what is damaged.
type Scrubbing struct {
	// Every is how long after the last scrub the next one begins; the first one begins after a tenth of it. 0: never.
	Every time.Duration
	// Share is how much of the time a scrub works, in percent, 1 to 100: so it leaves the disk to others.
	Share int
}

// firstScrub is which part of the interval is before the first scrub: a server that is started each day scrubs, too.
const firstScrub = 10

const (
	// scrubPrefix begins the name of the directory of the copy, in that of the store: that has room for a store.
	scrubPrefix = "scrub.new-"
	// scrubMemory is what a check may remember, in bytes: with more workspaces it reads the copy several times.
	scrubMemory = 64 << 20
	// scrubRoom is how many copies there must be room for: appends need some, too.
	scrubRoom = 2
	// maxLogged is how many faults are logged, each in a line.
	maxLogged = 20
)

// Outcomes of scrubs, as metrics have them.
const (
	scrubSound  = "sound"
	scrubFaulty = "faulty"
	scrubFailed = "failed"
)

// scrubber scrubs the stores while they are served.
type scrubber struct {
	stores []shardStore
	dir    string
	logger *zap.Logger

	mu  sync.Mutex
	how Scrubbing
	// changed is closed when how has changed.
	changed chan struct{}
	// doing is what the scrub under way does, "" if there is none.
	doing string
	last  scrubbed
	// outcomes counts them.
	outcomes map[string]uint64
}

// scrubbed is what became of a scrub.
type scrubbed struct {
	at     time.Time
	took   time.Duration
	report verify.Report
	err    error
}

// errRoom says that there is no room for a copy.
var errRoom = errors.New("not enough room for a copy of the store")

// startScrubbing scrubs until what it returns is called.
func (s *server) startScrubbing(stores []shardStore) (b *scrubber, end func()) {
	b = &scrubber{
		stores: stores, dir: s.config.Dir, logger: s.logger.Named("serve"), how: s.config.Scrub, changed: make(chan struct{}),
		outcomes: map[string]uint64{scrubSound: 0, scrubFaulty: 0, scrubFailed: 0},
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.run(ctx)
	}()
	return b, func() {
		cancel()
		<-ended
	}
}

// configure changes how it scrubs, also the scrub under way. One that is to be never ends.
func (b *scrubber) configure(how Scrubbing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.how == how {
		return
	}
	b.how = how
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *scrubber) current() (how Scrubbing, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.how, b.changed
}

func (b *scrubber) run(ctx context.Context) {
	begun, share := time.Now(), time.Duration(firstScrub)
	for ctx.Err() == nil {
		how, changed := b.current()
		var due <-chan time.Time
		if how.Every > 0 {
			due = time.After(time.Until(begun.Add(how.Every / share)))
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-due:
			b.scrub(ctx)
			begun, share = time.Now(), 1
		}
	}
}

// scrub scrubs once, and tells what it has found.
func (b *scrubber) scrub(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := NewThrottle()
	done := scrubbed{at: time.Now()}
	done.report, done.err = b.check(ctx, func() {
		how, changed := b.current()
		if how.Every == 0 {
			cancel()
			return
		}
		t.Rest(ctx, how.Share, changed)
	})
	done.took = time.Since(done.at)
	b.does("")
	if ctx.Err() != nil {
		return // the server stops, or it is not wanted any more
	}
	b.finish(done)
}

// check checks a copy of each store, one after the other, and calls rest now and then.
func (b *scrubber) check(ctx context.Context, rest func()) (r verify.Report, err error) {
	left, err := os.ReadDir(b.dir)
	for _, e := range left {
		if strings.HasPrefix(e.Name(), scrubPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(b.dir, e.Name()))) // of a server that was killed
		}
	}
	for _, store := range b.stores {
		if err != nil {
			break
		}
		var one verify.Report
		one, err = b.checkOne(ctx, store.of(), rest)
		r.Events += one.Events
		r.FaultCount += one.FaultCount
		r.Faults = append(r.Faults, one.Faults...)
	}
	return r, err
}

// checkOne checks a copy of a store.
func (b *scrubber) checkOne(ctx context.Context, store *bolt.Store, rest func()) (r verify.Report, err error) {
	if err := b.mustHaveRoom(ctx, store); err != nil {
		return r, err
	}
	temporary, err := os.MkdirTemp(b.dir, scrubPrefix+"*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	dir := filepath.Join(temporary, "copy")
	tell := func(what string, doneSoFar, total uint64) {
		b.does(fmt.Sprintf("%s: %d %%", what, percent(doneSoFar, total)))
		rest()
	}
	_, err = store.Backup(ctx, dir, bolt.CopyOptions{
		SkipVerify: true, Progress: func(p bolt.CopyProgress) { tell(p.Phase, p.Done, p.Total) },
	})
	if err != nil {
		return r, err
	}
	return bolt.Verify(ctx, dir, verify.Options{
		MaxMemory: scrubMemory, Progress: func(p verify.Progress) { tell("check "+string(p.Phase), p.Done, p.Total) },
	})
}

// mustHaveRoom returns errRoom if a copy could take the room that appends need.
func (b *scrubber) mustHaveRoom(ctx context.Context, store *bolt.Store) error {
	figures, err := store.Figures(ctx)
	if err != nil {
		return err
	}
	size := uint64(0)
	for _, f := range figures.Files {
		size += uint64(f.Size)
	}
	free, known := freeBytes(b.dir)
	if want := scrubRoom * size; known && free < want {
		return fmt.Errorf("%w: got %d bytes free, want %d", errRoom, free, want)
	}
	return nil
}

func (b *scrubber) does(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doing = what
}

// finish keeps and logs what a scrub has found.
func (b *scrubber) finish(done scrubbed) {
	outcome := scrubSound
	switch {
	case done.err != nil:
		outcome = scrubFailed
		b.logger.Error("a scrub could not look at all", zap.Error(done.err))
	case done.report.FaultCount > 0:
		outcome = scrubFaulty
		for i, f := range done.report.Faults {
			if i == maxLogged {
				break
			}
			b.logger.Error("a scrub has found a fault", zap.String("fault", f.String()))
		}
		b.logger.Error("a scrub has found faults: `partita verify` tells what repairs them", zap.Uint64("faults", done.report.FaultCount))
	default:
		b.logger.Info("a scrub has found no fault", zap.Uint64("events", done.report.Events), zap.Duration("took", done.took))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = done
	b.outcomes[outcome]++
}

// statuses are what /v1/status says of it: nothing as long as nobody wants any.
func (b *scrubber) statuses() []httpapi.ActorStatus {
	if b == nil { // a node answers others before its server is ready
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.how.Every == 0 && b.last.at.IsZero() {
		return nil
	}
	s := httpapi.ActorStatus{Group: ownGroup, Key: "scrub", State: messages.StateNormal.String()}
	if b.last.err != nil || b.last.report.FaultCount > 0 {
		s.State = messages.StateAlarming.String()
	}
	s.Details = b.last.words()
	if b.doing != "" {
		s.Details = b.doing + "; " + s.Details
	} else if b.how.Every == 0 {
		s.Details = "off; " + s.Details
	}
	return []httpapi.ActorStatus{s}
}

// words says what became of a scrub.
func (d *scrubbed) words() string {
	if d.at.IsZero() {
		return "none was made yet"
	}
	at, took := d.at.UTC().Format(time.RFC3339), d.took.Round(time.Millisecond)
	switch {
	case d.err != nil:
		return fmt.Sprintf("that of %s could not look at all: %v", at, d.err)
	case d.report.FaultCount > 0:
		return fmt.Sprintf("that of %s has found faults: %d, the first: %v", at, d.report.FaultCount, d.report.Faults[0])
	}
	return fmt.Sprintf("that of %s has found no fault in %d events, in %v", at, d.report.Events, took)
}

// Scrubbed implements metrics.Upkeep.
func (b *scrubber) Scrubbed() metrics.Scrubbed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return metrics.Scrubbed{
		Outcomes: maps.Clone(b.outcomes), Last: b.last.at, Looked: !b.last.at.IsZero() && b.last.err == nil, Faults: b.last.report.FaultCount,
		Every: b.how.Every,
	}
}
