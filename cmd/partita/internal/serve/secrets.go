package serve

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"

	"go.uber.org/zap"
)

// secrets are by what a server and its clients know each other. Their files may change while it runs.
type secrets struct {
	// token is empty if none is needed.
	token string
	// certificate is nil without TLS.
	certificate *tls.Certificate
}

// readSecrets reads the files that there are. It returns ErrConfig if something is wrong in them.
func (c *Config) readSecrets() (s secrets, err error) {
	if s.token = c.Token; c.TokenFile != "" {
		if s.token, err = ReadToken(c.TokenFile); err != nil {
			return s, fmt.Errorf("%w: token: %w", ErrConfig, err)
		}
	}
	if s.token != "" && len(s.token) < minToken {
		return s, fmt.Errorf("%w: token: got %d bytes, want at least %d", ErrConfig, len(s.token), minToken)
	}
	if strings.ContainsFunc(s.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return s, fmt.Errorf("%w: token: it has a space or a character that is not printable ASCII, which no client can send", ErrConfig)
	}
	s.certificate, err = c.loadCertificate()
	return s, err
}

// ReadToken returns the token that is in a file.
func ReadToken(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(content))
	if token == "" {
		return "", fmt.Errorf("%s: there is no token in it", file)
	}
	return token, nil
}

func (c *Config) loadCertificate() (*tls.Certificate, error) {
	if c.CertFile == "" && c.KeyFile == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	if c.CertFile == "" || c.KeyFile == "" {
		return nil, fmt.Errorf("%w: a certificate and its key are needed, got one of them", ErrConfig)
	}
	certificate, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: certificate: %w", ErrConfig, err)
	}
	return &certificate, nil
}

// tlsConfig returns what gives clients the certificate of now, nil without TLS.
func (s *server) tlsConfig() *tls.Config {
	if s.secrets.Load().certificate == nil {
		return nil
	}
	return &tls.Config{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.secrets.Load().certificate, nil },
		MinVersion:     tls.VersionTLS12,
	}
}

// reloadSecrets reads the certificate and the token again. If something is wrong, both stay as they are.
func (s *server) reloadSecrets() {
	if s.config.CertFile == "" && s.config.TokenFile == "" {
		return
	}
	next, err := s.config.readSecrets()
	if err != nil {
		s.logger.Named("serve").Error("the certificate and the token stay as they are", zap.Error(err))
		return
	}
	s.secrets.Store(&next)
	s.logger.Named("serve").Warn("the certificate and the token were read again")
}
