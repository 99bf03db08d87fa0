package cluster

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"

	"github.com/partita-go/partita/httpapi"
)

// paramShard names the shard that is meant, where that is needed.
const paramShard = "shard"

// wanted returns the shard that the query names, and whether it names one.
func (n *Node) wanted(r *http.Request) (s *Shard, given bool, err error) {
	query := r.URL.Query()
	if !query.Has(paramShard) {
		return nil, false, nil
	}
	i, err := strconv.Atoi(query.Get(paramShard))
	if err != nil || i < 0 || i >= len(n.shards) {
		return nil, false, httpapi.Malformed(paramShard, fmt.Sprintf("got %.40q, want 0 to %d", query.Get(paramShard), len(n.shards)-1))
	}
	return n.shards[i], true, nil
}

// without returns a request without a parameter, which is not the API's.
func without(r *http.Request, parameter string) *http.Request {
	r = r.Clone(r.Context())
	query := r.URL.Query()
	query.Del(parameter)
	r.URL.RawQuery = query.Encode()
	return r
}

// recorded is an answer that is not sent yet. It implements [http.ResponseWriter].
type recorded struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newRecorded() *recorded { return &recorded{header: make(http.Header), status: http.StatusOK} }

// Header implements [http.ResponseWriter].
func (r *recorded) Header() http.Header { return r.header }

// WriteHeader implements [http.ResponseWriter].
func (r *recorded) WriteHeader(status int) { r.status = status }

// Write implements [http.ResponseWriter].
func (r *recorded) Write(b []byte) (int, error) { return r.body.Write(b) }

func (r *recorded) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	_, _ = w.Write(r.body.Bytes()) // who does not listen any more is not told
}

// forgetBroken is deferred around what a proxy records. A proxy panics when an answer breaks off, so that net/http breaks that
// to the client off, too. Of this one the client has nothing yet: it is lost as one that has not begun.
func (r *recorded) forgetBroken(ctx context.Context, failed *error) {
	switch reason := recover(); reason {
	case nil:
	case http.ErrAbortHandler:
		*r = *newRecorded()
		*failed = &lostError{true, cmp.Or(context.Cause(ctx), errBrokenOff)}
	default:
		panic(reason)
	}
}

// gather lets the owner of each shard answer a request, and returns the answers, by shard.
func (n *Node) gather(r *http.Request, body []byte) []*recorded {
	return each(n, func(s *Shard) *recorded {
		said, one := newRecorded(), r.Clone(r.Context())
		one.Header.Del("Accept-Encoding") // it is to be read
		if r.Method == http.MethodHead {
			one.Method = http.MethodGet
		}
		s.forwardWith(said, one, body)
		return said
	})
}
