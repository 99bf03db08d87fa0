package raftlog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/partita-go/partita/storage/replog"
)

// Create begins a log on a node. All its nodes do that, once, each with the same list of nodes; then they are started. A
// node that has lost its disk must not do it again under its old name: it could vote twice. The others, who know it, refuse
// it then, and it stops with [ErrForgotten]; [Join] is for it, under a new name. The directory must not be there; it is made
// whole or not at all.
//
// ErrOptions, ErrExists.
func Create(o Options, nodes []replog.NodeID) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	servers, err := configuration(o.Node, nodes)
	if err != nil {
		return err
	}
	return create(o, func(d *files) error {
		return raft.BootstrapCluster(o.raftConfig(), d.wal, d.wal, d.snapshots, nil, servers)
	})
}

// Join makes the directory of a node that is to be added to a log that others have begun, under a name that no node of it
// ever had. Start it; then the owner adds it: [Log.Add]. at is where its replica is, if that was made of another node's: the
// zero position begins at the beginning, which the others may not have any more. See Create for the rest.
func Join(o Options, at replog.Position) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	return create(o, func(d *files) error { return d.wal.Set(seededKey, positionBytes(at)) })
}

// Seed says that the replica of a node was made anew of another node's, and where that is. It is for a node that was too far
// behind, or differed, and still has its own directory of the log: with it what it has promised. The log must not be open.
//
// ErrOptions, [storage.ErrNotFound], [storage.ErrLocked], [storage.ErrForeign].
func Seed(o Options, at replog.Position) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	d, err := openDisk(o)
	if err != nil {
		return err
	}
	return errors.Join(d.wal.Set(seededKey, positionBytes(at)), d.close())
}

// create makes a directory, with what more puts there.
func create(o Options, more func(*files) error) error {
	if _, err := os.Lstat(o.Dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrExists, o.Dir)
	}
	temporary := o.Dir + ".new"
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	if err := fill(o, temporary, more); err != nil {
		return errors.Join(err, os.RemoveAll(temporary))
	}
	if err := os.Rename(temporary, o.Dir); err != nil {
		return err
	}
	return syncDir(filepath.Dir(o.Dir))
}

// configuration is the list of nodes as raft has it.
func configuration(own replog.NodeID, nodes []replog.NodeID) (raft.Configuration, error) {
	var c raft.Configuration
	found := false
	seen := make(map[replog.NodeID]bool)
	for _, id := range nodes {
		if err := checkNode(id); err != nil {
			return c, err
		}
		if seen[id] {
			return c, fmt.Errorf("%w: node %q is in the list twice", ErrOptions, id)
		}
		seen[id] = true
		found = found || id == own
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(id), Address: address(id)})
	}
	if !found {
		return c, fmt.Errorf("%w: node %q is not in the list", ErrOptions, own)
	}
	return c, nil
}

// fill makes the files.
func fill(o Options, dir string, more func(*files) error) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	o.Dir = dir
	d, err := openFiles(o)
	if err != nil {
		return err
	}
	var l life
	if _, err := rand.Read(l[:]); err != nil {
		return errors.Join(err, d.close())
	}
	err = errors.Join(d.wal.Set(identityKey, o.identity()), d.wal.Set(lifeKey, l[:]), more(d))
	return errors.Join(err, d.close(), syncDir(dir))
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
