package operate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/internal/quiet"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
)

const secret = "a-token-of-24-characters"

// program is one that runs subscription "mails" of a store and serves it under /shops, to those
// who have the token.
type program struct {
	*httptest.Server
	app *partition.App

	mu   sync.Mutex
	bad  []uint64
	sent []uint64
}

func (p *program) handle(_ context.Context, d partition.Delivery) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range d.Events {
		if slices.Contains(p.bad, e.Offset) {
			return &partition.BatchError{Index: i, Err: errors.New("no such address")}
		}
		p.sent = append(p.sent, e.Offset)
	}
	return nil
}

// fails says which events cannot be handled from now on.
func (p *program) fails(offsets ...uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad = offsets
}

func (p *program) handled() []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

func startProgram(t *testing.T, dir string) *program {
	t.Helper()
	store, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	system := quiet.NewSystem()
	parts := partition.NewAppParts(system, partition.Options{})
	app, err := parts.Deploy(limit(t), partition.Application{Descriptor: store.Descriptor()}, store)
	check(t, err)
	check(t, app.Ready(limit(t)))
	api, err := httpapi.New(app, app.Reader(), httpapi.Options{})
	check(t, err)
	mux := http.NewServeMux()
	mux.Handle("/shops/", http.StripPrefix("/shops", httpapi.RequireToken(api, secret)))
	p := &program{Server: httptest.NewServer(mux), app: app}
	t.Cleanup(func() {
		p.Close()
		check(t, parts.Close(context.Background()))
		system.Shutdown()
		check(t, store.Close(context.Background()))
		run(t, "verify", "--db", dir).has(t, exitFine)
	})
	return p
}

// subscribe starts "mails" of workspace 4, which gives events up soon.
func (p *program) subscribe(t *testing.T) {
	t.Helper()
	_, err := p.app.Subscribe(limit(t), partition.SubscriptionConfig{
		Name: "mails", Workspace: new(messages.WSID(4)), Handler: p.handle, MinDelay: time.Millisecond, MaxDelay: time.Millisecond, MaxTries: 1,
	})
	check(t, err)
}

// TestSubscriptionsThatRun are shown and changed through the program that runs them.
func TestSubscriptionsThatRun(t *testing.T) {
	t.Setenv(tokenVariable, secret)
	p := startProgram(t, newStore(t))
	at := []string{"--url", p.URL + "/shops"}
	do := func(args string) outcome {
		t.Helper()
		return run(t, append(strings.Fields("subscriptions "+args), at...)...)
	}
	p.fails(1, 3)
	p.subscribe(t)
	awaitThat(t, "there are no parked events", func() bool {
		shown := subscriptions(t, append([]string{"show", "--name", "mails"}, at...)...)
		return lane(t, shown, 0)["state"] == "waiting" && lane(t, shown, 0)["next_offset"] == "4"
	})
	if o := do("parked --name mails").has(t, exitFine); strings.Count(o.stdout, "no such address") != 2 {
		t.Errorf("got:\n%s", o.stdout)
	}
	do("replay --name mails --partition 0 --offset 1").fails(t, exitBlind, "not handled", "no such address")
	p.fails(3)
	do("replay --name mails --all").fails(t, exitBlind, "1 of 2 parked events could not be handled", "no such address")
	p.fails()
	if o := do("replay --name mails --all").has(t, exitFine); o.stdout != "mails: the handler has taken 1 event\n" {
		t.Errorf("got %q", o.stdout)
	}
	do("replay --name mails --partition 0 --offset 1").fails(t, exitBlind, "not parked")
	if got, want := p.handled(), []uint64{2, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("got %d, want %d", got, want)
	}
	do("pause --name mails").has(t, exitFine)
	do("rewind --name mails --partition 0 --offset 3").has(t, exitFine)
	if o := do("show --name mails").has(t, exitFine); !strings.Contains(o.stdout, "mails reads workspace 4: paused, 1 event behind, 0 parked\n") {
		t.Errorf("got:\n%s", o.stdout)
	}
	do("skip --name mails").has(t, exitFine)
	do("rewind --name mails --partition 0 --offset 2").has(t, exitFine)
	do("resume --name mails").has(t, exitFine)
	awaitThat(t, "events are missing", func() bool { return len(p.handled()) == 5 })
	do("delete --name mails").has(t, exitFine)
	do("show --name mails").fails(t, exitBlind, "no such subscription", p.URL)
	if len(p.app.Subscriptions()) > 0 {
		t.Error("it runs")
	}
}

// TestSubscriptionsOfServe: a server without handlers shows those that are kept, and changes
// where they stand; all pages of a list are read, whatever the names are.
func TestSubscriptionsOfServe(t *testing.T) {
	dir := newStore(t)
	keepSubscriptions(t, dir)
	names := []string{"..", "a/../b", "50%", "é?x=y#z"}
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	for _, name := range names {
		check(t, s.PutSubscription(limit(t), named(name)))
	}
	for i := range pageLimit {
		check(t, s.PutSubscription(limit(t), named(strings.Repeat("x", i%190+1)+string(rune('a'+i/190)))))
	}
	check(t, s.Close(limit(t)))
	file := filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(file, []byte(secret), 0o600))
	server := startServe(t, dir, "--token-file", file)
	awaitReady(t, server.URL)
	at := []string{"--url", server.URL, "--token-file", file}
	if list := subscriptions(t, append([]string{"list"}, at...)...)["subscriptions"].([]any); len(list) != pageLimit+6 {
		t.Errorf("got %d", len(list))
	}
	for _, name := range names {
		run(t, append([]string{"subscriptions", "pause", "--name", name}, at...)...).has(t, exitFine)
		shown := subscriptions(t, append([]string{"show", "--name", name}, at...)...)["subscription"].(map[string]any)
		if shown["name"] != name || shown["state"] != "paused" {
			t.Errorf("got %v", shown)
		}
	}
	run(t, append([]string{"subscriptions", "replay", "--name", "mails", "--all"}, at...)...).fails(t, exitBlind, "does not run here")
	run(t, append([]string{"subscriptions", "rewind", "--name", "mails", "--partition", "0", "--offset", "5"}, at...)...).fails(t, exitBlind, "beyond the next event")
	run(t, "subscriptions", "show", "--name", "mails", "--db", dir).has(t, exitFine)
	server.stop()
	run(t, "verify", "--db", dir).has(t, exitFine)
}

// TestSubscriptionsBehindPrefix: a list is read to its end also if somebody between takes a prefix off the path.
func TestSubscriptionsBehindPrefix(t *testing.T) {
	const page = `{"results": [{"name": "%s"}], "next": %s}`
	s := httptest.NewServer(http.StripPrefix("/shops", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/subscriptions":
			http.NotFound(w, r)
		case r.URL.Query().Get("after") == "":
			_, _ = fmt.Fprintf(w, page, "first", `"/v1/subscriptions?after=first&limit=1"`)
		default:
			_, _ = fmt.Fprintf(w, page, "second", "null")
		}
	})))
	defer s.Close()
	if list := subscriptions(t, "list", "--url", s.URL+"/shops")["subscriptions"].([]any); len(list) != 2 {
		t.Errorf("got %v", list)
	}
}

// TestServerCannotBeAsked: each error says what is wrong, and the token is not given away.
func TestServerCannotBeAsked(t *testing.T) {
	given := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("hello"))
	}))
	defer other.Close()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"results": [], "next": "/v1/subscriptions"}`))
	}))
	defer endless.Close()
	elsewhere := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer elsewhere.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	p := startProgram(t, newStore(t))
	for url, want := range map[string]string{
		p.URL + "/shops": "needs a token", p.URL: "404", closed.URL: "refused", endless.URL: "is no page", elsewhere.URL: "307", other.URL: "cannot be understood",
	} {
		run(t, "subscriptions", "list", "--url", url).fails(t, exitBlind, want, url)
	}
	t.Setenv(tokenVariable, secret)
	run(t, "subscriptions", "list", "--url", elsewhere.URL).fails(t, exitBlind, "307")
	if got := <-given; got != "" || len(given) > 0 {
		t.Errorf("got %q, and %d more", got, len(given))
	}
	run(t, "subscriptions", "list", "--url", "http://192.0.2.1:1").fails(t, exitBlind, "anybody could read", "see partita subscriptions list --help")
	run(t, "subscriptions", "list", "--url", p.URL+"/shops/").has(t, exitFine)
}
