package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
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
func (n *Node) mend(stopped error) {
	var err error
	switch {
	case errors.Is(stopped, storage.ErrFull):
		err = n.reopen(n.running)
	case (errors.Is(stopped, replog.ErrBehind) || errors.Is(stopped, replog.ErrDiverged)) && n.maySeed():
		n.o.Logger.Warn("this node makes itself anew", zap.Error(stopped))
		err = n.makeAnew(n.running)
	default:
		<-n.running.Done()
		return
	}
	if n.running.Err() != nil {
		return
	}
	n.note(err)
	if err == nil {
		n.o.Logger.Info("this node takes part again", zap.NamedError("stopped", stopped))
		return
	}
	n.o.Logger.Warn("this node cannot take part yet", zap.NamedError("stopped", stopped), zap.Error(err))
	select {
	case <-time.After(mendEvery):
	case <-n.running.Done():
	}
}

// maySeed reports whether the node may make itself anew once more, and counts that.
func (n *Node) maySeed() bool {
	if time.Since(n.seeded) > seedTime {
		n.seeded, n.seeds = time.Now(), 0
	}
	n.seeds++
	return n.seeds <= seedTries
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
func (n *Node) reopen(ctx context.Context) error {
	if err := n.part().close(ctx); err != nil {
		return err
	}
	return n.openPart(ctx, false)
}

// makeAnew makes the store anew of the owner's. The old one is there until the new one is whole. What the node has promised
// the others is in its directory of the log, which stays.
func (n *Node) makeAnew(ctx context.Context) error {
	seed := seedDir(n.o.Dir)
	if err := os.RemoveAll(seed); err != nil {
		return err
	}
	from, err := n.findOwner(ctx)
	if err != nil {
		return err
	}
	at, err := n.peers.seed(ctx, from, seed)
	if err != nil {
		return fmt.Errorf("seed from node %s: %w", from, err)
	}
	if err := n.part().close(ctx); err != nil {
		return err
	}
	// If the program ends here, the old store is behind again.
	if err := raftlog.Seed(n.o.logOptions(nil), at); err != nil {
		return err
	}
	if err := os.RemoveAll(oldDir(n.o.Dir)); err != nil {
		return err
	}
	if err := os.Rename(StoreDir(n.o.Dir), oldDir(n.o.Dir)); err != nil {
		return err
	}
	if err := n.finishSeed(); err != nil {
		return err
	}
	return n.openPart(ctx, false)
}

// seedDir is where a store is made anew, oldDir where the one is that it replaces.
func seedDir(dir string) string { return StoreDir(dir) + ".seed" }
func oldDir(dir string) string  { return StoreDir(dir) + ".old" }

// finishSeed lets a new store take the place of the old one, if that is out of the way: now, or at the next start.
func (n *Node) finishSeed() error {
	if isMissing(StoreDir(n.o.Dir)) && !isMissing(seedDir(n.o.Dir)) && !isMissing(n.o.logOptions(nil).Dir) {
		if err := os.Rename(seedDir(n.o.Dir), StoreDir(n.o.Dir)); err != nil {
			return err
		}
	}
	if isMissing(oldDir(n.o.Dir)) {
		return nil
	}
	if err := n.moveSockets(); err != nil {
		return err
	}
	return errors.Join(syncDir(n.o.Dir), os.RemoveAll(oldDir(n.o.Dir)))
}

// moveSockets lets a program be found on in the directory of the store, where it listens for its operator.
func (n *Node) moveSockets() error {
	found, err := os.ReadDir(oldDir(n.o.Dir))
	for _, f := range found {
		if f.Type()&os.ModeSocket != 0 {
			err = errors.Join(err, os.Rename(filepath.Join(oldDir(n.o.Dir), f.Name()), filepath.Join(StoreDir(n.o.Dir), f.Name())))
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
func (n *Node) join(ctx context.Context) error {
	log := n.o.logOptions(nil)
	if !isMissing(log.Dir) {
		return nil
	}
	if !isMissing(StoreDir(n.o.Dir)) {
		return fmt.Errorf("%w: Join: %s is there, and %s is not: want both or none", ErrOptions, StoreDir(n.o.Dir), log.Dir)
	}
	seed := seedDir(n.o.Dir)
	if err := errors.Join(os.RemoveAll(seed), os.MkdirAll(n.o.Dir, 0o700)); err != nil {
		return err
	}
	from, err := n.findOwner(ctx)
	if err != nil {
		return err
	}
	at, err := n.peers.seed(ctx, from, seed)
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
func (n *Node) findOwner(ctx context.Context) (replog.NodeID, error) {
	for _, m := range n.askOthers(ctx) {
		if m.Serves {
			return m.Node, nil
		}
	}
	return "", n.noQuorum()
}

// answerSeed writes a seed for another node, if this one leads.
func (n *Node) answerSeed(w http.ResponseWriter, r *http.Request) {
	if reign, _ := n.now(); reign == nil {
		httpapi.Refuse(w, r, &OwnerError{n.Leader()})
		return
	}
	if !n.seeding.TryLock() {
		http.Error(w, errSeeding.Error(), http.StatusServiceUnavailable)
		return
	}
	defer n.seeding.Unlock()
	n.o.Logger.Info("this node seeds another one")
	err := n.part().store.WriteSeed(r.Context(), &accepting{ResponseWriter: w, limit: stallTime}, bolt.CopyOptions{})
	if err != nil {
		n.o.Logger.Warn("the seed for another node is not whole", zap.Error(err))
		panic(http.ErrAbortHandler) // so that nobody takes it for whole
	}
}

// seed makes a store of another node's, and returns where that is.
func (p *peers) seed(ctx context.Context, from replog.NodeID, dir string) (at replog.Position, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stalled := time.AfterFunc(stallTime, cancel)
	defer stalled.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+hostOf(from)+seedPath, nil)
	if err != nil {
		return at, err
	}
	response, err := p.transport.RoundTrip(request)
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
	copied, err := bolt.ReadSeed(p.node.running, body, dir, bolt.CopyOptions{})
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
