package serve

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestHangupSecrets: at a hangup the server takes another certificate and another token from their files, without a moment
// in which nobody gets in; what is wrong is told, and changes nothing.
func TestHangupSecrets(t *testing.T) {
	certFile, keyFile, pool := newCertificate(t)
	tokenFile := filepath.Join(t.TempDir(), "token")
	check(t, os.WriteFile(tokenFile, []byte(token+"\n"), 0o600))
	hangups := make(chan os.Signal)
	r := start(t, Config{
		Dir: newStore(t), Listen: "127.0.0.1:0", CertFile: certFile, KeyFile: keyFile, TokenFile: tokenFile, Connections: 8, Hangups: hangups,
	})
	hangup := func() {
		hangups <- syscall.SIGHUP
		hangups <- syscall.SIGHUP // taken when the first one was heeded
	}
	anew := func() {
		r.client.CloseIdleConnections()
		r.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	anew()
	r.awaitReady()
	get := func(status int, token string) {
		r.expect(status, http.MethodGet, "/v1/log", "", "Authorization", "Bearer "+token)
	}
	get(http.StatusOK, token)

	check(t, os.WriteFile(tokenFile, []byte("short"), 0o600))
	hangup()
	get(http.StatusOK, token)
	check(t, os.WriteFile(tokenFile, nil, 0o600))
	hangup()
	get(http.StatusOK, token)

	nextCert, nextKey, nextPool := newCertificate(t)
	// The second hangup may still be under way, and must find something wrong at each moment.
	check(t, os.Rename(nextCert, certFile))
	check(t, os.WriteFile(tokenFile, []byte(token+token), 0o600))
	hangup() // the key is still the other one's
	anew()
	get(http.StatusOK, token)
	check(t, os.Rename(nextKey, keyFile))
	hangup()
	get(http.StatusUnauthorized, token) // over the connection that was there
	pool = nextPool
	anew()
	get(http.StatusOK, token+token)
	r.stop()
	notes := r.notes.String()
	stayed := strings.Count(notes, "stay as they are") // the sixth hangup may find the new key
	if strings.Contains(notes, token) || stayed < 5 || stayed > 6 || !strings.Contains(notes, "got 5 bytes, want at least 16") {
		t.Errorf("got %s", notes)
	}
}
