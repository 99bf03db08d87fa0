package raftlog

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/replog"
)

// life tells the directories of one name apart. Each is drawn when it is made. A node that has lost its disk, and begins anew
// under its old name, has forgotten for whom it has voted, and what it has stored for others: it must not count again.
type life [16]byte

// lives are a node's own, by the log.
type lives map[replog.Shard]life

// append adds what a stream has of them.
func (all lives) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(all)))
	for shard, l := range all {
		b = binary.BigEndian.AppendUint32(b, uint32(shard))
		b = append(b, l[:]...)
	}
	return b
}

// readLives reads exactly that.
func readLives(r io.Reader) (lives, error) {
	var b [4 + len(life{})]byte
	if _, err := io.ReadFull(r, b[:2]); err != nil {
		return nil, err
	}
	all := make(lives)
	for range binary.BigEndian.Uint16(b[:2]) {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		all[replog.Shard(binary.BigEndian.Uint32(b[:4]))] = life(b[4:])
	}
	return all, nil
}

// peers are the other nodes as this one has met them first. What it knows of them is on its disk. nil knows nobody, and
// takes everybody.
type peers struct {
	own life
	// forgotten is told if another node has met another one of this name.
	forgotten func(error)

	mu   sync.Mutex
	disk interface {
		Get(key []byte) ([]byte, error)
		Set(key, value []byte) error
	}
}

// newPeers reads who this node is itself.
func newPeers(o Options, f *files, forgotten func(error)) (*peers, error) {
	own, err := f.meta.Get(lifeKey)
	if err == nil && len(own) != len(life{}) {
		err = fmt.Errorf("%w: %s: it has no life: got %x", storage.ErrForeign, o.Dir, own)
	}
	if err != nil {
		return nil, err
	}
	return &peers{own: life(own), forgotten: forgotten, disk: f.meta}, nil
}

func (p *peers) life() (own life) {
	if p != nil {
		own = p.own
	}
	return own
}

// met returns which one of a name this node has met first, zero if none, or nobody can say.
func (p *peers) met(id replog.NodeID) (l life) {
	if p == nil {
		return l
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if met, err := p.disk.Get(peerKey(id)); err == nil && len(met) == len(l) {
		l = life(met)
	}
	return l
}

func peerKey(id replog.NodeID) []byte { return append([]byte("partita peer "), id...) }

// know reports whether a node is the one that this node has met first under its name.
func (p *peers) know(id replog.NodeID, l life) (bool, error) {
	if p == nil {
		return true, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	key := peerKey(id)
	met, err := p.disk.Get(key)
	if err != nil {
		return false, err
	}
	if len(met) == 0 {
		err = p.disk.Set(key, l[:])
		return err == nil, err
	}
	return string(met) == string(l[:]), nil
}
