package operate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// TestHealth: the health check of a container says whether a server lives, or is ready, over TLS too.
func TestHealth(t *testing.T) {
	server := startServe(t, newStore(t))
	awaitReady(t, server.URL)
	run(t, "health", "--url", server.URL).has(t, exitFine)
	run(t, "health", "--url", server.URL, "--ready").has(t, exitFine)
	server.stop()
	run(t, "health", "--url", server.URL).fails(t, exitBlind, "connect")
	run(t, "health", "--url", "localhost").fails(t, exitBlind, "--url")

	var status atomic.Int64
	status.Store(http.StatusOK)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(int(status.Load()))
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	s.StartTLS()
	defer s.Close()
	cert := filepath.Join(t.TempDir(), "cert.pem")
	check(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	run(t, "health", "--url", s.URL, "--tls-cert", cert).has(t, exitFine)
	run(t, "health", "--url", s.URL).fails(t, exitBlind, "certificate")
	status.Store(http.StatusBadGateway)
	run(t, "health", "--url", s.URL, "--tls-cert", cert).fails(t, exitBlind, "502")
	run(t, "health", "--url", s.URL, "--tls-cert", cert+"x").fails(t, exitBlind, "no such file")
}

// TestHealthOfAddress: a certificate that names an address alone is believed, too, under whatever name the server is asked.
func TestHealthOfAddress(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP("2001:db8::7"), net.IPv4(192, 0, 2, 7)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	s.StartTLS()
	defer s.Close()
	cert := filepath.Join(t.TempDir(), "cert.pem")
	check(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), 0o600))
	run(t, "health", "--url", s.URL, "--tls-cert", cert).has(t, exitFine)
}
