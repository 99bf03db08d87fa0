package cluster

import (
	"cmp"
	"context"
	"errors"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

// part is what a node has of the application: its part of the log, and its store. It is another one when the node was mended.
type part struct {
	log    *raftlog.Log
	store  *bolt.Store
	reader *partition.Reader
	// api answers reads of what this node has.
	api *httpapi.API
}

// part returns what the node has now.
func (s *Shard) part() *part { return s.own.Load() }

// leadership is that of the log. A store that has closed itself has closed the log too, which does not know why.
func (p *part) leadership() (replog.Leadership, <-chan struct{}) {
	now, changed := p.log.Leadership()
	if failed := p.store.Failed(); failed != nil {
		now.Term, now.Leader, now.Stopped = 0, "", cmp.Or(now.Stopped, failed)
	}
	return now, changed
}

// openPart opens what the node has.
func (s *Shard) openPart(ctx context.Context, create bool) (err error) {
	p := &part{}
	if p.log, err = raftlog.New(s.logOptions(s.node.port)); err != nil {
		return err
	}
	o := s.o.Store
	o.Log, o.Create, o.NoGenerators = p.log, create, s.index > 0
	if p.store, err = bolt.Open(ctx, s.dir(), s.o.Application.Descriptor, o); err != nil {
		return err
	}
	if err := s.checkOwned(ctx, p.store); err != nil {
		return errors.Join(err, p.store.Close(context.WithoutCancel(ctx)))
	}
	p.reader = partition.NewReader(p.store)
	if p.api, err = httpapi.NewReplica(p.reader, s.o.HTTP); err != nil {
		return err
	}
	s.own.Store(p)
	if s.node.serving.Err() != nil {
		p.api.Stop()
	}
	return s.node.makeWhole()
}

// toDeploy is the store as the application has it.
func (p *part) toDeploy(s *Shard) storage.Store {
	if len(s.node.shards) == 1 {
		return p.store
	}
	return &owning{p.store, s.Owned()}
}
