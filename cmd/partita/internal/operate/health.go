package operate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/cmd/partita/internal/config"
	"github.com/partita-go/partita/httpapi"
)

// healthLimit is how long the answer may take.
const healthLimit = 4 * time.Second

func healthCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "health", Short: "Ask a server whether it lives, or is ready",
		Long: `Ask a server whether it lives, as the health check of a container does. It needs
no token.`,
	}
	set := c.Flags()
	server := set.String("url", "http://"+config.DefaultListen, "where the server is, `URL`")
	cert := set.String("tls-cert", "", "`FILE` of the server's certificate, as PEM: no other server is believed, and the URL may have another name")
	ready := set.Bool("ready", false, "ask whether every partition takes events")
	c.RunE = cli.Run(func(ctx context.Context, s cli.Streams) error {
		ctx, cancel := context.WithTimeout(ctx, healthLimit)
		defer cancel()
		transport, err := trusting(*cert)
		if err != nil {
			return err
		}
		defer transport.CloseIdleConnections()
		path := "healthz"
		if *ready {
			path = "readyz"
		}
		return askHealth(ctx, transport, *server, path)
	})
	return c
}

func askHealth(ctx context.Context, transport *http.Transport, server, path string) error {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" {
		return cli.WrongUsage("--url: got %.80q, want http://HOST:PORT or https://HOST:PORT", server)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(path).String(), nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil || response.StatusCode == http.StatusOK {
		return err
	}
	if p, ok := httpapi.ReadProblem(content); ok {
		return fmt.Errorf("%s: %w", request.URL, p)
	}
	return fmt.Errorf("%s: got %s, which is no answer of partita", request.URL, response.Status)
}

// trusting returns a transport that believes the server of a certificate only, if there is one.
func trusting(cert string) (*http.Transport, error) {
	if cert == "" {
		return &http.Transport{}, nil
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: there is no certificate in it", cert)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cert, err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c)
	config := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	switch {
	case len(c.DNSNames) > 0:
		config.ServerName = c.DNSNames[0]
	case len(c.IPAddresses) > 0:
		config.ServerName = c.IPAddresses[0].String()
	}
	return &http.Transport{TLSClientConfig: config}, nil
}
