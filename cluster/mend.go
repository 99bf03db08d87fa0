package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
	"github.com/partita-go/partita/storage/verify"
)

const (
	// mendEvery is how long to wait before a node that has stopped tries again to take part.
	mendEvery = 5 * time.Second
	// seedTries is how often it makes itself anew within seedTime: each copies all that there is.
	seedTries = 5
	seedTime  = time.Hour
	// stallTime is how long another node may send nothing of a seed.
	stallTime = 30 * time.Second
)

// mend lets a node take part again whose part in the log has stopped. It returns when it does, or some time after it could not.
func (s *Shard) mend(stopped error) {
	var err error
	switch {
	case errors.Is(stopped, storage.ErrFull):
		err = s.reopen(s.node.running)
	case mayPass(stopped):
		s.pause()
		err = s.reopen(s.node.running)
	case (errors.Is(stopped, replog.ErrBehind) || errors.Is(stopped, replog.ErrDiverged)) && s.maySeed():
		s.o.Logger.Warn("this node makes itself anew", zap.Error(stopped))
		err = s.makeAnew(s.node.running)
	default:
		<-s.node.running.Done()
		return
	}
	if s.node.running.Err() != nil {
		return
	}
	s.note(err)
	if err == nil {
		s.o.Logger.Info("this node takes part again", zap.NamedError("stopped", stopped))
		return
	}
	s.o.Logger.Warn("this node cannot take part yet", zap.NamedError("stopped", stopped), zap.Error(err))
	s.pause()
}

// pause waits before the next try.
func (s *Shard) pause() {
	select {
	case <-time.After(mendEvery):
	case <-s.node.running.Done():
	}
}

// mayPass reports whether what has stopped a replica may be over after a while: somebody has had the lock of a file, or the
// system refused to open it. What says that a file or a disk is not whole stays.
func mayPass(stopped error) bool {
	for _, lasting := range []error{storage.ErrDamaged, messages.ErrOutcomeUnknown, raftlog.ErrDisk} {
		if errors.Is(stopped, lasting) {
			return false
		}
	}
	_, refused := errors.AsType[syscall.Errno](stopped)
	return refused || errors.Is(stopped, storage.ErrLocked)
}

// maySeed reports whether the node may make itself anew once more, and counts that.
func (s *Shard) maySeed() bool {
	if time.Since(s.seeded) > seedTime {
		s.seeded, s.seeds = time.Now(), 0
	}
	s.seeds++
	return s.seeds <= seedTries
}

// close closes the store, and with it the node's part of the log.
func (p *part) close(ctx context.Context) error {
	p.api.Stop()
	if err := p.store.Close(ctx); ctx.Err() != nil {
		return err
	}
	return nil // it has stopped: what it says is known
}

// reopen opens the store again, which may have room by now.
func (s *Shard) reopen(ctx context.Context) error {
	if err := s.part().close(ctx); err != nil {
		return err
	}
	return s.openPart(ctx, false)
}

// makeAnew makes the store anew of the owner's. The old one is there until the new one is whole. What the node has promised
// the others is in its directory of the log, which stays.
func (s *Shard) makeAnew(ctx context.Context) error {
	seed := seedDir(s.dir())
	if err := os.RemoveAll(seed); err != nil {
		return err
	}
	from, err := s.findOwner(ctx)
	if err != nil {
		return err
	}
	at, err := s.seed(ctx, from, seed)
	if err != nil {
		return fmt.Errorf("seed from node %s: %w", from, err)
	}
	s.o.Logger.Info(seedIsWhole)
	if err := s.part().close(ctx); err != nil {
		return err
	}
	// If the program ends here, the old store is behind again.
	if err := raftlog.Seed(s.logOptions(nil), at); err != nil {
		return err
	}
	if err := os.RemoveAll(oldDir(s.dir())); err != nil {
		return err
	}
	if err := os.Rename(s.dir(), oldDir(s.dir())); err != nil {
		return err
	}
	if err := s.finishSeed(); err != nil {
		return err
	}
	return s.openPart(ctx, false)
}

// seedIsWhole is logged when the new store is there and checked.
const seedIsWhole = "the new store is whole"

// seedDir is where a store is made anew, oldDir where the one is that it replaces.
func seedDir(store string) string { return store + ".seed" }
func oldDir(store string) string  { return store + ".old" }

// finishSeed lets a new store take the place of the old one, if that is out of the way: now, or at the next start.
func (s *Shard) finishSeed() error {
	if isMissing(s.dir()) && !isMissing(seedDir(s.dir())) && !isMissing(s.logOptions(nil).Dir) {
		if err := os.Rename(seedDir(s.dir()), s.dir()); err != nil {
			return err
		}
	}
	if isMissing(oldDir(s.dir())) {
		return nil
	}
	if err := s.moveSockets(); err != nil {
		return err
	}
	return errors.Join(syncDir(s.o.Dir), os.RemoveAll(oldDir(s.dir())))
}

// moveSockets lets a program be found on in the directory of the store, where it listens for its operator.
func (s *Shard) moveSockets() error {
	found, err := os.ReadDir(oldDir(s.dir()))
	for _, f := range found {
		if f.Type()&os.ModeSocket != 0 {
			err = errors.Join(err, os.Rename(filepath.Join(oldDir(s.dir()), f.Name()), filepath.Join(s.dir(), f.Name())))
		}
	}
	return err
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}

// join makes the store of a new node of the owner's, and its part of the log, unless that is there. As long as it is not, no
// node of the log knows this one.
func (s *Shard) join(ctx context.Context) error {
	log := s.logOptions(nil)
	if !isMissing(log.Dir) {
		return nil
	}
	if !isMissing(s.dir()) {
		return fmt.Errorf("%w: Join: %s is there, and %s is not: want both or none", ErrOptions, s.dir(), log.Dir)
	}
	seed := seedDir(s.dir())
	if err := errors.Join(os.RemoveAll(seed), os.MkdirAll(s.o.Dir, 0o700)); err != nil {
		return err
	}
	from, err := s.findOwner(ctx)
	if err != nil {
		return err
	}
	at, err := s.seed(ctx, from, seed)
	if err != nil {
		return fmt.Errorf("seed from node %s: %w", from, err)
	}
	return raftlog.Join(log, at)
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// findOwner asks the others who leads: this one is told nothing any more.
func (s *Shard) findOwner(ctx context.Context) (replog.NodeID, error) {
	for _, m := range s.askOthers(ctx) {
		if m.Serves {
			return m.Node, nil
		}
	}
	return "", s.noQuorum()
}

// seededNode is the part of a seed's query that names the node which asks.
const seededNode = "node"

// answerSeed writes a seed for another node, if this one leads.
func (s *Shard) answerSeed(w http.ResponseWriter, r *http.Request) {
	if reign, _ := s.now(); reign == nil {
		httpapi.Refuse(w, r, &OwnerError{s.Leader()})
		return
	}
	if !s.seeding.TryLock() {
		http.Error(w, errSeeding.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.seeding.Unlock()
	s.o.Logger.Info("this node seeds another one")
	// It is going to need what comes behind, and has yet to read and check the seed.
	drop := s.part().log.KeepFor(replog.NodeID(r.URL.Query().Get(seededNode)))
	err := s.part().store.WriteSeed(r.Context(), &accepting{ResponseWriter: w, limit: stallTime}, bolt.CopyOptions{})
	if err != nil {
		drop()
		s.o.Logger.Warn("the seed for another node is not whole", zap.Error(err))
		panic(http.ErrAbortHandler) // so that nobody takes it for whole
	}
}

// seed makes a store of another node's, and returns where that is.
func (s *Shard) seed(ctx context.Context, from replog.NodeID, dir string) (at replog.Position, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalled := time.AfterFunc(stallTime, cancel)
	defer stalled.Stop()
	request, err := s.request(ctx, http.MethodGet, from, seedPath+"?"+url.Values{seededNode: {string(s.o.Node)}}.Encode(), nil)
	if err != nil {
		return at, err
	}
	response, err := s.node.peers.transport.RoundTrip(request)
	if err != nil {
		return at, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem))
		return at, refusal(response.StatusCode, response.Header, content)
	}
	// The check at the end, of what has come whole, is not hurried.
	body := &lively{Reader: response.Body, stalled: stalled}
	check := verify.Options{MaxMemory: s.o.Store.WithDefaults().Memory / 4} // the store is given nothing meanwhile
	copied, err := bolt.ReadSeed(s.node.running, body, dir, bolt.CopyOptions{Verify: check})
	return copied.Position, err
}

// lively puts off the end of a stream that is read whenever something comes.
type lively struct {
	io.Reader
	stalled *time.Timer
}

// Read implements [io.Reader].
func (l *lively) Read(b []byte) (int, error) {
	l.stalled.Reset(stallTime)
	return l.Reader.Read(b)
}
