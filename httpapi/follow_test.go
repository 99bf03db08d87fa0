package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

// house is a store on disk with a server that is stopped and started again.
type house struct {
	t   *testing.T
	ctx context.Context
	dir string

	mu     sync.Mutex
	url    string
	store  *bolt.Store
	parts  *partition.AppParts
	app    *partition.App
	server *httptest.Server
	// up is closed while the server runs.
	up chan struct{}
}

func newHouse(t *testing.T, patience time.Duration) *house {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return &house{t: t, ctx: ctx, dir: filepath.Join(t.TempDir(), "store"), up: make(chan struct{})}
}

func (h *house) start() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var err error
	h.store, err = bolt.Open(h.ctx, h.dir, descriptor(), bolt.Options{Create: true})
	check(h.t, err)
	h.parts = partition.NewAppParts(shared, partition.Options{})
	h.app, err = h.parts.Deploy(h.ctx, partition.Application{Descriptor: descriptor(), WorkspaceZero: true}, h.store)
	check(h.t, err)
	api, err := New(h.app, h.app.Reader(), Options{})
	check(h.t, err)
	h.server = httptest.NewUnstartedServer(api)
	h.server.Config.RegisterOnShutdown(api.Stop)
	h.server.Start()
	h.url = h.server.URL
	close(h.up)
}

func (h *house) stop() {
	h.t.Helper()
	h.mu.Lock()
	h.up = make(chan struct{})
	h.mu.Unlock()
	check(h.t, h.server.Config.Shutdown(h.ctx))
	h.server.Close()
	check(h.t, h.parts.Close(h.ctx))
	check(h.t, h.store.Close(h.ctx))
}

// current waits until a server runs and takes events, and returns its URL.
func (h *house) current() (string, error) {
	h.mu.Lock()
	up := h.up
	h.mu.Unlock()
	select {
	case <-up:
	case <-h.ctx.Done():
		return "", h.ctx.Err()
	}
	h.mu.Lock()
	url, app := h.url, h.app
	h.mu.Unlock()
	if err := app.Ready(h.ctx); err != nil && !errors.Is(err, partition.ErrStopped) {
		return "", err
	}
	return url, nil
}

// try sends a request to the server that runs now.
func (h *house) try(client *http.Client, method, path, body, key string) (status int, answer []byte, err error) {
	url, err := h.current()
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(h.ctx, method, url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", jsonType)
	if key != "" {
		request.Header.Set(headerKey, key)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, h.ctx.Err() // the server has gone
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, h.ctx.Err()
	}
	return response.StatusCode, answer, nil
}

// write appends events until each was acknowledged, whatever happens to the server.
func (h *house) write(writer, events, workspaces int) error {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for n := range events {
		path := fmt.Sprintf("/v1/workspaces/%d/events", (writer+n*n)%workspaces)
		for done := false; !done; {
			status, answer, err := h.try(client, http.MethodPost, path,
				fmt.Sprintf(`{"kind": 1, "wanted": [{"sequence": 16}], "body": {"writer": %d, "n": %d}}`, writer, n), fmt.Sprintf("%d/%d", writer, n))
			switch {
			case err != nil:
				return err
			case status == http.StatusCreated || status == http.StatusOK:
				done = true
			case status != 0 && status < 500:
				return fmt.Errorf("got %d, %s", status, answer)
			}
		}
	}
	return nil
}

// follower reads a log by polling. What it has besides the sums is the URL that it saved.
type follower struct {
	saved string
	// sums are running hashes of the events, of each partition for itself.
	sums  map[int]hash.Hash
	count int
	// most is how many events there will be at the most.
	most int
	// requests and starts count what it took.
	requests, starts int
}

// poll reads one page.
func (f *follower) poll(h *house, client *http.Client) error {
	f.requests++
	status, answer, err := h.try(client, http.MethodGet, f.saved, "", "")
	if err != nil || status == 0 || status == http.StatusServiceUnavailable {
		return err // it tries the same URL again
	}
	if status != http.StatusOK {
		return fmt.Errorf("%s: got %d, %s", f.saved, status, answer)
	}
	var p page
	if err := json.Unmarshal(answer, &p); err != nil {
		return err
	}
	for _, raw := range p.Results {
		var e event
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		add(f.sums, e.Partition, raw)
		if f.count++; f.count > f.most {
			return fmt.Errorf("got more than %d events", f.most)
		}
	}
	f.saved = p.PollMore
	if p.Next != nil {
		f.saved = *p.Next
	}
	// A program that starts again may ask for pages of another size.
	at, _, _ := strings.Cut(f.saved, "&limit")
	f.saved = fmt.Sprintf("%s&limit=%d&wait=%d", at, 1+rand.IntN(maxLimit), rand.IntN(2))
	return nil
}

func add(sums map[int]hash.Hash, partition int, event []byte) {
	if sums[partition] == nil {
		sums[partition] = sha256.New()
	}
	sums[partition].Write(append(bytes.Clone(event), '\n'))
}

func text(sums map[int]hash.Hash) string {
	all := make(map[int]string)
	for p, sum := range sums {
		all[p] = hex.EncodeToString(sum.Sum(nil))
	}
	return fmt.Sprint(all)
}

// want returns the count and the sums of the events of a log that the store has.
func (h *house) want(path string) (count int, sums map[int]hash.Hash) {
	h.t.Helper()
	sums = make(map[int]hash.Hash)
	reader := partition.NewReader(h.store)
	for p := range messages.PartitionID(4) {
		for e, err := range reader.PLog(h.ctx, p, 0) {
			check(h.t, err)
			if path != "/v1/log" && path != fmt.Sprintf("/v1/partitions/%d/log", p) && path != fmt.Sprintf("/v1/workspaces/%d/log", e.Workspace) {
				continue
			}
			b, err := encode(EventOf(&e, messages.Printer{}))
			check(h.t, err)
			add(sums, int(p), b)
			count++
		}
	}
	return count, sums
}

// wholeNumber returns that of the environment, or the default.
func wholeNumber(t *testing.T, name string, unset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unset
	}
	n, err := strconv.Atoi(text)
	check(t, err)
	return n
}

// TestNothingIsSkipped: while clients write and the server is stopped and started again,
// those who poll get every event exactly once, in order, with what they saved. How many
// events and readers there are can be set, and one log that all of them read: POLL_EVENTS,
// POLL_READERS, POLL_LOG.
func TestNothingIsSkipped(t *testing.T) {
	const writers, workspaces, restarts = 16, 6, 3
	events, readers := wholeNumber(t, "POLL_EVENTS", 480)/writers, wholeNumber(t, "POLL_READERS", 6)
	h := newHouse(t, 4*patience+time.Duration(events*writers)*3*time.Millisecond)
	h.start()
	stopped, stop := context.WithCancel(h.ctx)
	logs := []string{"/v1/log", "/v1/workspaces/1/log", "/v1/partitions/1/log", "/v1/workspaces/5/log", "/v1/partitions/2/log"}
	if log := os.Getenv("POLL_LOG"); log != "" {
		logs = []string{log}
	}
	var paths []string
	var followers []*follower
	var reading, writing sync.WaitGroup
	for i := range readers {
		path := logs[i%len(logs)]
		f := &follower{saved: path + "?limit=1", sums: make(map[int]hash.Hash), most: events * writers}
		paths, followers = append(paths, path), append(followers, f)
		reading.Go(func() {
			for stopped.Err() == nil {
				if err := f.read(stopped, h); err != nil && stopped.Err() == nil {
					t.Errorf("%s: %v", path, err)
					return
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			if err := h.write(w, events, workspaces); err != nil {
				t.Errorf("writer %d: %v", w, err)
			}
		})
	}
	for i := range restarts {
		eventually(h.ctx, t, "events", func() bool { return h.events() > uint64(writers*events*(i+1)/(restarts+2)) })
		h.stop()
		h.start()
	}
	writing.Wait()
	stop()
	reading.Wait()
	h.compare(paths, followers, writers*events)
	h.stop()
	h.verify()
}

// read polls for a while, as a program does that is stopped then: what it has is what it has
// saved.
func (f *follower) read(ctx context.Context, h *house) error {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	f.starts++
	for n := rand.IntN(50); n >= 0 && ctx.Err() == nil; n-- {
		if err := f.poll(h, client); err != nil {
			return err
		}
	}
	return nil
}

// events is how many events the store has.
func (h *house) events() (n uint64) {
	for p := range messages.PartitionID(4) {
		register, err := h.store.Register(h.ctx, p)
		check(h.t, err)
		n += uint64(register.Last)
	}
	return n
}

// compare lets followers read to the end, and compares what they have with the logs.
func (h *house) compare(paths []string, followers []*follower, total int) {
	h.t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	counts, allSums := make(map[string]int), make(map[string]map[int]hash.Hash)
	read, requests, starts := 0, 0, 0
	for i, f := range followers {
		path := paths[i]
		if allSums[path] == nil {
			counts[path], allSums[path] = h.want(path)
		}
		count, sums := counts[path], allSums[path]
		for f.count < count {
			check(h.t, f.poll(h, client))
		}
		check(h.t, f.poll(h, client)) // there is no more
		if f.count != count || text(f.sums) != text(sums) {
			h.t.Errorf("%s: got %d events, %s, want %d, %s", path, f.count, text(f.sums), count, text(sums))
		}
		if path == "/v1/log" && count != total {
			h.t.Errorf("got %d events, %d were acknowledged", count, total)
		}
		read, requests, starts = read+f.count, requests+f.requests, starts+f.starts
	}
	h.t.Logf("%d events were written; %d readers got %d in %d requests, and began %d times", total, len(followers), read, requests, starts)
}

func (h *house) verify() {
	h.t.Helper()
	store, err := bolt.OpenExisting(h.ctx, h.dir, bolt.Options{ReadOnly: true})
	check(h.t, err)
	storagetest.Verify(h.t, store)
	check(h.t, store.Close(h.ctx))
}
