package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ask(t *testing.T, s *service, method, path, key, body string) (int, string) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	request.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	s.routes().ServeHTTP(w, request)
	b, err := io.ReadAll(w.Result().Body)
	check(t, err)
	return w.Code, string(b)
}

// TestInvoicing: invoices of many callers have the numbers from 1 on, each tenant its own; a repeated request gets the
// same number, also after a restart; and a store is made when that is asked for, and only then.
func TestInvoicing(t *testing.T) {
	const n = 40
	dir := filepath.Join(t.TempDir(), "invoices")
	if s, err := start(t.Context(), dir, false); err == nil {
		t.Fatalf("a store was made by mistake: %v", s.close())
	}
	check(t, run(t.Context(), dir, true, ""))
	s, err := start(t.Context(), dir, false)
	check(t, err)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if status, body := ask(t, s, http.MethodPost, fmt.Sprintf("/tenants/%d/invoices", 7+i%2), fmt.Sprint("order ", i), `{"cents":1}`); status != http.StatusCreated {
				t.Errorf("got %d, %s", status, body)
			}
		})
	}
	all.Wait()
	_, first := ask(t, s, http.MethodPost, "/tenants/7/invoices", "order 0", `{"cents":1}`)
	check(t, s.close())

	s, err = start(t.Context(), dir, false)
	check(t, err)
	defer func() { check(t, s.close()) }()
	if _, again := ask(t, s, http.MethodPost, "/tenants/7/invoices", "order 0", `{"cents":1}`); again != first {
		t.Errorf("got %s, want %s", again, first)
	}
	if status, body := ask(t, s, http.MethodPost, "/tenants/7/invoices", "order 0", `{"cents":2}`); status != http.StatusUnprocessableEntity {
		t.Errorf("got %d, %s", status, body)
	}
	if status, body := ask(t, s, http.MethodPost, "/tenants/7/invoices", "", `{}`); status != http.StatusBadRequest {
		t.Errorf("got %d, %s", status, body)
	}
	for _, tenant := range []string{"7", "8"} {
		_, body := ask(t, s, http.MethodGet, "/tenants/"+tenant+"/invoices", "", "")
		var list []invoice
		check(t, json.Unmarshal([]byte(body), &list))
		var got, want []string
		for i, one := range list {
			got, want = append(got, one.Number), append(want, fmt.Sprintf("INV/%d/%04d", time.Now().UTC().Year(), i+1))
		}
		if len(got) != n/2 || !slices.Equal(got, want) {
			t.Errorf("tenant %s: got %q", tenant, got)
		}
	}
}
