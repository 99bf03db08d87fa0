package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/partita-go/partita/storage/replog"
)

// What stands first in a stream. Numbers are big-endian.
//
//	version  1
//	shard    4  which log it is for, or that it is for requests
//	from     1  length, and as many bytes: who opens it
//	to       1  length, and as many bytes: who is meant
//	lives    2  how many, and as many shards and lives: which one of that name opens it
//	meant   16  which one of the other name is meant, 0 if it was never met
//
// The other side says one byte: an answer; and, if it is welcome, its own lives. Raft's own messages follow, or requests.
//
// to is there since raft counts the votes of the nodes that it has asked: a wrong address must not make one node two. meant is
// there since two clusters may have the same names: who reaches one of the other's is refused before anybody remembers it. A
// log's stream has the life of that log. One for requests has those of all the node's logs that are open, and means nobody:
// two nodes may have met in any of their logs.
type hello struct {
	version  byte
	shard    replog.Shard
	from, to replog.NodeID
	lives    lives
	meant    life
}

const (
	helloVersion = 4
	maxNodeID    = 255
)

// answer is what the other side says.
type answer byte

// The answers.
const (
	welcome answer = iota
	otherVersion
	otherNode
	noLog
	otherLife
	notMeant
	otherName
)

var answers = map[answer]string{
	otherName:    "the certificate is neither for this node's name nor for the host of its address there",
	otherVersion: "it speaks another version",
	otherNode:    "it is another node",
	noLog:        "it does not have this log now",
	otherLife:    "it knows another directory of this node's name",
	notMeant:     "it has another directory than the node that was met there first: its address is of another cluster, or it was made anew",
}

func (h hello) bytes() []byte {
	b := []byte{h.version}
	b = binary.BigEndian.AppendUint32(b, uint32(h.shard))
	for _, id := range []replog.NodeID{h.from, h.to} {
		b = append(b, byte(len(id)))
		b = append(b, id...)
	}
	b = h.lives.append(b)
	return append(b, h.meant[:]...)
}

// readHello reads exactly the first bytes of a stream. What follows in another version is not read.
func readHello(r io.Reader) (h hello, err error) {
	var b [5]byte
	if _, err := io.ReadFull(r, b[:1]); err != nil {
		return h, err
	}
	if h.version = b[0]; h.version != helloVersion {
		return h, nil
	}
	if _, err := io.ReadFull(r, b[:4]); err != nil {
		return h, err
	}
	h.shard = replog.Shard(binary.BigEndian.Uint32(b[:4]))
	for _, id := range []*replog.NodeID{&h.from, &h.to} {
		if _, err := io.ReadFull(r, b[:1]); err != nil {
			return h, err
		}
		name := make([]byte, b[0])
		if _, err := io.ReadFull(r, name); err != nil {
			return h, err
		}
		*id = replog.NodeID(name)
	}
	if h.lives, err = readLives(r); err != nil {
		return h, err
	}
	_, err = io.ReadFull(r, h.meant[:])
	return h, err
}

// exchange writes the first bytes, and reads the answer: which one of its name the other side is.
func (h hello) exchange(c net.Conn) (other lives, err error) {
	if _, err := c.Write(h.bytes()); err != nil {
		return other, err
	}
	var b [1]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return other, fmt.Errorf("%w: it has closed it", errRefused)
		}
		return other, err
	}
	switch a := answer(b[0]); {
	case a == welcome:
		return readLives(c)
	case a == otherLife:
		return other, fmt.Errorf("%w: %w: %s", errRefused, ErrForgotten, answers[a])
	case a == notMeant:
		return other, fmt.Errorf("%w: %s: want %x", errRefused, answers[a], h.meant[:4])
	case answers[a] != "":
		return other, fmt.Errorf("%w: %s", errRefused, answers[a])
	default:
		return other, fmt.Errorf("%w: answer %d", errRefused, a)
	}
}
