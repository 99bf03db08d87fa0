package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/storage/replog"
)

// Comparison says whether nodes have the same.
type Comparison struct {
	// Head is the entry of the log up to which they were compared: the least head of those that answer. If there are several
	// shards it is that of the first one: each member has its shard's.
	Head uint64 `json:"head,string"`
	// Same says that all have the same that were compared, and Compared how many were: of each shard.
	Same     bool           `json:"same"`
	Compared int            `json:"compared"`
	Members  []PositionJSON `json:"members"`
}

// PositionJSON is what a node has of a shard.
type PositionJSON struct {
	Shard int           `json:"shard"`
	Node  replog.NodeID `json:"node"`
	// Head is the entry up to which it was compared.
	Head uint64 `json:"head,string"`
	// Sum is the checksum of all entries up to the head, in hexadecimal. Unknown is why there is none.
	Sum     string `json:"sum,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// position returns what this node has up to a head.
func (s *Shard) position(head uint64) PositionJSON {
	j := PositionJSON{Shard: s.index, Node: s.o.Node, Head: head}
	if at, known := s.part().log.PositionAt(head); known {
		j.Sum = fmt.Sprintf("%08x", at.Sum)
	} else {
		j.Unknown = fmt.Sprintf("it does not remember entry %d", head)
	}
	return j
}

// answerPosition tells another node what this one has.
func (s *Shard) answerPosition(w http.ResponseWriter, r *http.Request) {
	head, err := strconv.ParseUint(r.URL.Query().Get("head"), 10, 64)
	if err != nil {
		httpapi.Refuse(w, r, httpapi.Malformed("head", err.Error()))
		return
	}
	j := s.position(head)
	answer(w, &j)
}

// answerCompare compares what the nodes have that answer.
func (n *Node) answerCompare(w http.ResponseWriter, r *http.Request) {
	of := each(n, func(s *Shard) Comparison { return s.compare(r.Context()) })
	all := of[0]
	for _, c := range of[1:] {
		all.Same = all.Same && c.Same
		all.Compared = min(all.Compared, c.Compared)
		all.Members = append(all.Members, c.Members...)
	}
	answer(w, &all)
}

// compare asks all nodes how far they are, and then what they have up to where all are.
func (s *Shard) compare(ctx context.Context) Comparison {
	c := Comparison{Head: s.Status().Head}
	others := s.askOthers(ctx)
	for _, m := range others {
		if m.Unreachable == "" {
			c.Head = min(c.Head, m.Head)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	c.Members = make([]PositionJSON, len(others)+1)
	c.Members[0] = s.position(c.Head)
	var asked sync.WaitGroup
	for i, m := range others {
		asked.Go(func() {
			j := &c.Members[i+1]
			if err := s.ask(ctx, m.Node, positionPath+"?head="+strconv.FormatUint(c.Head, 10), j); err != nil {
				*j = PositionJSON{Unknown: errorText(causeOf(ctx, err))}
			}
			j.Shard, j.Node, j.Head = s.index, m.Node, c.Head
		})
	}
	asked.Wait()
	c.judge()
	return c
}

// judge says whether those that know have the same.
func (c *Comparison) judge() {
	sums := make(map[string]bool)
	for i := range c.Members {
		if m := &c.Members[i]; m.Unknown == "" {
			sums[m.Sum] = true
			c.Compared++
		}
	}
	c.Same = len(sums) <= 1
}
