package httpclient

import (
	"cmp"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Options say how a client asks. The zero value of each field means its default.
type Options struct {
	// Token is the bearer token that the server wants. Default: none. It is sent over https, or to this machine, only.
	Token string
	// Transport sends the requests. Default: one of its own, with the proxy that the environment names.
	Transport http.RoundTripper
	// MinDelay is how long the first wait is before a request is repeated, and MaxDelay the longest one, each with as
	// much as a half taken off by chance. Defaults 50 ms and 5 s.
	MinDelay, MaxDelay time.Duration
	// Timeout is how long one try may take; a stream has no end. Default 30 s.
	Timeout time.Duration
	// Silence is how long nothing may come from a stream: the server sends something every 15 s. Then it is opened anew.
	// Default 45 s.
	Silence time.Duration
}

// Client asks one server. It is safe for concurrent use, and keeps connections open: Close ends those that are idle.
type Client struct {
	base    *url.URL
	options Options
	http    *http.Client
}

// New returns a client of the server at a URL, as http://localhost:7420. It returns ErrOptions. The server is not asked yet.
func New(server string, o Options) (*Client, error) {
	base, err := url.Parse(server)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("%w: got %.80q, want http://HOST:PORT or https://HOST:PORT, and nothing but a path behind it", ErrOptions, base.Redacted())
	case base.Scheme == "http" && o.Token != "" && !isLoopback(base.Hostname()):
		return nil, fmt.Errorf("%w: got %.80q and a token, which anybody could read on its way: want https, or this machine", ErrOptions, server)
	case min(o.MinDelay, o.MaxDelay, o.Timeout, o.Silence) < 0:
		return nil, fmt.Errorf("%w: a time is below 0", ErrOptions)
	}
	o.MinDelay = cmp.Or(o.MinDelay, 50*time.Millisecond)
	o.MaxDelay = cmp.Or(o.MaxDelay, max(5*time.Second, o.MinDelay))
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.Silence = cmp.Or(o.Silence, 45*time.Second)
	if o.Transport == nil {
		o.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	}
	return &Client{base: base, options: o, http: &http.Client{
		Transport: o.Transport,
		// Whoever answers instead is not given the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }

// Close closes the connections that are idle. Requests and streams under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }
