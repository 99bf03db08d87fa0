package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// maxInvoice is the largest invoice, in bytes.
const maxInvoice = 1 << 16

func (s *service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /tenants/{tenant}/invoices", s.write)
	mux.HandleFunc("GET /tenants/{tenant}/invoices", s.list)
	return mux
}

// invoice is an invoice as it is listed.
type invoice struct {
	Number  string          `json:"number"`
	Invoice json.RawMessage `json:"invoice"`
}

// write gives an invoice its number. The number is the event's: if the event is not durable, nobody has the number, and
// the next invoice gets it.
func (s *service) write(w http.ResponseWriter, r *http.Request) {
	tenant, err := messages.ParseWSID(r.PathValue("tenant"))
	body, errBody := io.ReadAll(http.MaxBytesReader(w, r.Body, maxInvoice))
	key := r.Header.Get("Idempotency-Key")
	if errors.Join(err, errBody) != nil || tenant == 0 || !json.Valid(body) || key == "" {
		http.Error(w, "want a tenant, an Idempotency-Key and an invoice as JSON", http.StatusBadRequest)
		return
	}
	sequencer, err := s.app.SequencerOf(tenant)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	// Whoever repeats the request, because the answer was lost, gets the same number.
	sum := sha256.Sum256([]byte(key))
	done, err := sequencer.Append(r.Context(), partition.AppendTo{Workspace: tenant, Kind: tenants, DedupID: partition.DedupID(sum[:16])},
		partition.Draft{Wanted: []partition.Wanted{{Seq: invoices}}, Body: body})
	switch {
	case err == nil:
		answer(w, http.StatusCreated, invoice{s.printer.Print(tenants, done.Numbers[0]), body})
	case errors.Is(err, partition.ErrDedupMismatch):
		http.Error(w, "the key was used for another invoice", http.StatusUnprocessableEntity)
	default: // busy, stopping, a full disk, or the outcome is not known: in each case the same request may be repeated
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// list shows the invoices of a tenant, in the order of their numbers.
func (s *service) list(w http.ResponseWriter, r *http.Request) {
	tenant, err := messages.ParseWSID(r.PathValue("tenant"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	all := []invoice{}
	for e, err := range s.app.Reader().WLog(r.Context(), tenant, 1) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		all = append(all, invoice{s.printer.Print(tenants, e.Numbers[0]), e.Body})
	}
	answer(w, http.StatusOK, all)
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // whoever does not listen any more is not told
}
