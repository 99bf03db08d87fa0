package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "0123456789abcdef"

// limit bounds what must not hang; it is far above what anything takes.
func limit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newStore(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	s, err := bolt.Open(limit(t), dir, messages.Descriptor{Application: "shops", Partitions: 2, Kinds: []messages.Kind{{ID: 1, Name: "shop"}}}, bolt.Options{Create: true})
	check(t, err)
	check(t, s.Close(limit(t)))
	return dir
}

// newCertificate writes a certificate for 127.0.0.1 and its key, and returns the files and
// whoever trusts it.
func newCertificate(t testing.TB) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "partita"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	check(t, os.WriteFile(certFile, certPEM, 0o600))
	check(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pool
}

// running is a server that runs.
type running struct {
	t      *testing.T
	url    string
	client *http.Client
	notes  *bytes.Buffer
	cancel context.CancelFunc
	ended  chan error
}

func start(t *testing.T, c Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(limit(t))
	r := &running{t: t, client: &http.Client{Transport: &http.Transport{}}, notes: new(bytes.Buffer), cancel: cancel, ended: make(chan error, 1)}
	listening := make(chan string, 1)
	go func() {
		r.ended <- Run(ctx, c, r.notes, func(url, _ string) { listening <- url })
		close(r.ended)
	}()
	select {
	case r.url = <-listening:
	case err := <-r.ended:
		t.Fatalf("it did not start: %v", err)
	}
	t.Cleanup(r.stop)
	return r
}

// stop interrupts the server, and waits until it has ended. It may be called twice.
func (r *running) stop() {
	r.t.Helper()
	r.cancel()
	r.wait()
}

func (r *running) wait() {
	r.t.Helper()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("%v, notes: %s", err, r.notes)
		}
	case <-limit(r.t).Done():
		r.t.Error("it does not end")
	}
	r.client.CloseIdleConnections()
}

func (r *running) send(method, path, body string, headers ...string) *http.Response {
	r.t.Helper()
	request, err := http.NewRequestWithContext(limit(r.t), method, r.url+path, strings.NewReader(body))
	check(r.t, err)
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Host = request.Header.Get("Host")
	response, err := r.client.Do(request)
	check(r.t, err)
	return response
}

// expect sends a request and checks the status; it returns the body.
func (r *running) expect(status int, method, path, body string, headers ...string) string {
	r.t.Helper()
	response := r.send(method, path, body, headers...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(r.t, err)
	if response.StatusCode != status {
		r.t.Fatalf("%s %s: got %d, want %d: %s", method, path, response.StatusCode, status, text)
	}
	return string(text)
}

// awaitReady waits until every partition takes events.
func (r *running) awaitReady() {
	r.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := limit(r.t); ; {
		response := r.send(http.MethodGet, "/readyz", "")
		check(r.t, response.Body.Close())
		if response.StatusCode == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatal("it was never ready")
		}
	}
}

// TestServe: what is appended is there when the server is started again, and the store is
// sound and closed when it has stopped.
func TestServe(t *testing.T) {
	dir := newStore(t)
	for n := range 3 {
		r := start(t, Config{Dir: dir, Listen: "127.0.0.1:0", Connections: 8})
		r.awaitReady()
		r.expect(http.StatusCreated, http.MethodPost, "/v1/workspaces/42/events", fmt.Sprintf(`{"kind": 1, "body": %d}`, n))
		got := r.expect(http.StatusOK, http.MethodGet, "/v1/workspaces/42/log", "")
		if strings.Count(got, `"body":`) != n+1 {
			t.Errorf("start %d: got %s", n, got)
		}
		r.expect(http.StatusMisdirectedRequest, http.MethodGet, "/v1/log", "", "Host", "example.com")
		r.stop()
		if r.notes.Len() > 0 {
			t.Errorf("got notes %s", r.notes)
		}
	}
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{ReadOnly: true})
	check(t, err)
	storagetest.Verify(t, s)
	register, err := s.Register(limit(t), 0)
	check(t, err)
	if register.Last != 3 || register.Checkpoint != 4 {
		t.Errorf("got %+v, want everything flushed", register)
	}
	check(t, s.Close(limit(t)))
}

// TestToken: with a certificate and a token every address will do, and only whoever has the token
// is let in.
func TestToken(t *testing.T) {
	certFile, keyFile, pool := newCertificate(t)
	r := start(t, Config{Dir: newStore(t), Listen: ":0", CertFile: certFile, KeyFile: keyFile, Token: token, Connections: 8})
	r.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	if !strings.HasPrefix(r.url, "https://[::]:") {
		t.Fatalf("got %s", r.url)
	}
	r.url = strings.Replace(r.url, "[::]", "127.0.0.1", 1)
	r.awaitReady()
	r.expect(http.StatusUnauthorized, http.MethodGet, "/v1/log", "")
	r.expect(http.StatusUnauthorized, http.MethodGet, "/v1/log", "", "Authorization", "Bearer "+token+"0")
	response := r.send(http.MethodGet, "/v1/log", "", "Authorization", "Bearer "+token)
	check(t, response.Body.Close())
	if response.StatusCode != http.StatusOK || response.ProtoMajor != 1 {
		t.Errorf("got %s, %s", response.Status, response.Proto)
	}
	r.stop()
	if strings.Contains(r.notes.String(), token) {
		t.Errorf("the notes have the token: %s", r.notes)
	}
}

// TestConfig: what is wrong or not safe is refused before anything is opened.
func TestConfig(t *testing.T) {
	certFile, keyFile, _ := newCertificate(t)
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{Config{Listen: "0.0.0.0:0"}, "not a loopback address"},
		{Config{Listen: ":0"}, "not a loopback address"},
		{Config{Listen: "[2001:db8::1]:0", Token: token}, "not a loopback address"},
		{Config{Listen: "192.0.2.1:0", CertFile: certFile, KeyFile: keyFile}, "not a loopback address"},
		{Config{Listen: "127.0.0.1"}, "missing port"},
		{Config{Listen: "127.0.0.1:http"}, "want a port"},
		{Config{Listen: "127.0.0.1:65536"}, "want a port"},
		{Config{Listen: "example.com:80"}, "want an IP address"},
		{Config{Listen: ""}, "missing port"},
		{Config{Listen: "127.0.0.1:0", Token: "short"}, "got 5 bytes, want at least 16"},
		{Config{Listen: "127.0.0.1:0", CertFile: certFile}, "got one of them"},
		{Config{Listen: "127.0.0.1:0", KeyFile: keyFile}, "got one of them"},
		{Config{Listen: "127.0.0.1:0", CertFile: keyFile, KeyFile: keyFile}, "certificate"},
		{Config{Listen: "127.0.0.1:0", CertFile: certFile + "x", KeyFile: keyFile}, "no such file"},
	} {
		tt.c.Dir, tt.c.Connections = filepath.Join(t.TempDir(), "none"), 1
		err := Run(limit(t), tt.c, io.Discard, func(string, string) { t.Error("it has started") })
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.c, err, tt.want)
		}
	}
	for _, listen := range []string{"localhost:0", "[::1]:0", "127.3.2.1:0"} {
		err := Run(limit(t), Config{Dir: filepath.Join(t.TempDir(), "none"), Listen: listen, Connections: 1}, io.Discard, nil)
		if !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s: got %v", listen, err)
		}
	}
}

// TestAddressTaken: the store is closed again, and its epochs are as they were.
func TestAddressTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer taken.Close()
	dir := newStore(t)
	err = Run(limit(t), Config{Dir: dir, Listen: taken.Addr().String(), Connections: 1}, io.Discard, nil)
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	register, err := s.Register(limit(t), 0)
	check(t, err)
	if register.Epoch != 0 {
		t.Errorf("got epoch %d", register.Epoch)
	}
	check(t, s.Close(limit(t)))
}

// TestStop: open streams do not keep the server, and an event that is being sent is appended.
func TestStop(t *testing.T) {
	dir := newStore(t)
	r := start(t, Config{Dir: dir, Listen: "127.0.0.1:0", Connections: 8})
	r.awaitReady()
	stream := r.send(http.MethodGet, "/v1/log", "", "Accept", "text/event-stream")
	defer stream.Body.Close()
	body, sending := io.Pipe()
	given := make(chan error, 1)
	go func() { given <- r.post(body) }()
	// The client sends nothing of the body before the server reads it.
	_, err := sending.Write([]byte(`{"kind": 1, `))
	check(t, err)
	r.cancel()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream: %v", err)
	}
	_, err = sending.Write([]byte(`"body": "last"}`))
	check(t, err)
	check(t, sending.Close())
	check(t, <-given)
	r.wait()
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{ReadOnly: true})
	check(t, err)
	register, err := s.Register(limit(t), 0)
	check(t, err)
	if register.Last != 1 {
		t.Errorf("got %d events, want 1", register.Last)
	}
	check(t, s.Close(limit(t)))
}

// post sends an event whose body comes bit by bit.
func (r *running) post(body io.Reader) error {
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: 2 * time.Minute}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(limit(r.t), http.MethodPost, r.url+"/v1/workspaces/42/events", body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Expect", "100-continue")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusCreated {
		err = errors.New(response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// TestConnections: whoever comes when all connections are taken waits for one.
func TestConnections(t *testing.T) {
	r := start(t, Config{Dir: newStore(t), Listen: "127.0.0.1:0", Connections: 1})
	// Not one of net/http, which gives a connection up that it was slow to write to.
	first, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	check(t, err)
	answers := bufio.NewReader(first)
	ask := func() {
		t.Helper()
		_, err := io.WriteString(first, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		check(t, err)
		response, err := http.ReadResponse(answers, nil)
		check(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		check(t, err)
		if response.StatusCode != http.StatusOK {
			t.Fatal(response.Status)
		}
	}
	ask()
	given := make(chan error, 1)
	go func() { given <- r.askOnce() }()
	// Time enough for the other one's answer, if there could be one.
	for range 500 {
		ask()
	}
	if len(given) > 0 {
		t.Error("there are two connections")
	}
	check(t, first.Close())
	check(t, <-given)
	r.awaitReady()
	r.stop()
}

// TestReadersLeaveConnections: however few connections there are, those who stream and those
// who wait leave some to the others.
func TestReadersLeaveConnections(t *testing.T) {
	for _, tt := range []struct{ connections, streams, polls int }{
		{1, 1, 1}, {4, 1, 2}, {8, 2, 4}, {1023, 255, 511}, {1024, 256, 512}, {1 << 20, 256, 512},
	} {
		c := Config{Connections: tt.connections}
		o := c.options(zap.NewNop())
		if o.Streams != tt.streams || o.LongPolls != tt.polls {
			t.Errorf("%d connections: got %d streams and %d polls, want %d and %d", tt.connections, o.Streams, o.LongPolls, tt.streams, tt.polls)
		}
	}
	r := start(t, Config{Dir: newStore(t), Listen: "127.0.0.1:0", Connections: 4})
	r.awaitReady()
	for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
		stream := r.send(http.MethodGet, "/v1/log", "", "Accept", "text/event-stream")
		defer stream.Body.Close()
		if stream.StatusCode != want {
			t.Errorf("got %s, want %d", stream.Status, want)
		}
	}
	r.expect(http.StatusCreated, http.MethodPost, "/v1/workspaces/42/events", `{"kind": 1}`)
}

// askOnce sends a request over a connection of its own.
func (r *running) askOnce() error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(limit(r.t), http.MethodGet, r.url+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
