package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/partita-go/partita/partition"
)

// NewReplica returns the API of a server that has a replica of an application's log and does not run the application: it has
// the paths that read logs, records and numbers, and the document. All others are not there. What is read without
// consistency=local or at_least is refused with [replog.ErrNotOwner]. It returns ErrOptions if an option is wrong.
func NewReplica(reader *partition.Reader, o Options) (*API, error) {
	a, err := newAPI(reader, o)
	if err != nil {
		return nil, err
	}
	a.register(slices.DeleteFunc(a.routes(), func(r route) bool { return !slices.Contains(r.query, paramConsistency) && !r.anywhere }))
	return a, nil
}

// newAPI returns one without routes.
func newAPI(reader *partition.Reader, o Options) (*API, error) {
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	a := &API{
		reader: reader, descriptor: reader.Descriptor(), options: o, mux: http.NewServeMux(),
		polls: make(slots, o.LongPolls), streams: make(slots, o.Streams),
	}
	a.printer = a.descriptor.Printer()
	a.options.Logger = sampled(o.Logger.Named("http"))
	a.stopping, a.stop = context.WithCancel(context.Background())
	return a, nil
}

// Refuse answers a request with the problem that an error is.
func Refuse(w http.ResponseWriter, r *http.Request, err error) { outside(w, r).fail(problemOf(err)) }

// ReadBody reads the body of a request as the API does, which is JSON: for a handler that passes the request on. Its error is
// for [Refuse].
func (a *API) ReadBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	return newCall(a, w, r).body()
}

// Malformed returns an error for [Refuse] about a request whose field cannot be understood.
func Malformed(field, detail string) error {
	return &problem{kind: malformed, field: field, detail: detail}
}
