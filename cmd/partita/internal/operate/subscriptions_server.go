package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/partita-go/partita/cmd/internal/cli"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/partition"
)

const (
	// requestLimit is how long an answer may take: a change waits for its handler.
	requestLimit = 2 * time.Minute
	// maxAnswer is the largest answer that is read, in bytes.
	maxAnswer = 64 << 20
	// pageLimit is how much of a list is asked for at a time.
	pageLimit = 200
)

// errNotHandled is returned when a handler has failed on an event that was replayed.
var errNotHandled = errors.New("not handled")

// serverKeeper asks a server.
type serverKeeper struct {
	base   *url.URL
	token  string
	client *http.Client
	// place is the directory in which the server was found, "" if it was asked by its URL.
	place string
}

// newServerKeeper checks where the server is. A token is not sent where others can read it.
func newServerKeeper(base, token string) (*serverKeeper, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, cli.WrongUsage("--url: %v", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, cli.WrongUsage("--url: got %.80q, want http://HOST:PORT or https://HOST:PORT, and nothing but a path behind it", u.Redacted())
	case u.Scheme == "http" && token != "" && !isLoopback(u.Hostname()):
		return nil, cli.WrongUsage("--url: got %.80q and a token, which anybody could read on its way: want https, or this machine", base)
	}
	client := &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}, Timeout: requestLimit,
		// Whoever answers instead is not given the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &serverKeeper{base: u, token: token, client: client}, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

func (k *serverKeeper) close() error {
	k.client.CloseIdleConnections()
	return nil
}

func (k *serverKeeper) list(ctx context.Context) ([]httpapi.Subscription, error) {
	return pages[httpapi.Subscription](ctx, k, k.base.JoinPath("v1", "subscriptions"))
}

func (k *serverKeeper) show(ctx context.Context, name string) (one httpapi.Subscription, err error) {
	return one, k.ask(ctx, http.MethodGet, k.pathOf(name), nil, &one)
}

func (k *serverKeeper) parked(ctx context.Context, name string) ([]httpapi.ParkedEvent, error) {
	return pages[httpapi.ParkedEvent](ctx, k, k.pathOf(name).JoinPath("parked"))
}

func (k *serverKeeper) change(ctx context.Context, verb, name string, at partition.ParkedEvent) error {
	if verb == verbDelete {
		return k.ask(ctx, http.MethodDelete, k.pathOf(name), nil, nil)
	}
	body := []byte("{}")
	if at != (partition.ParkedEvent{}) {
		body = fmt.Appendf(nil, `{"partition": %d, "offset": "%d"}`, at.Partition, at.Offset)
	}
	return k.ask(ctx, http.MethodPost, k.pathOf(name).JoinPath(verb), body, nil)
}

// pathOf is where a subscription is. Its name may have slashes, or be two dots: JoinPath wants them
// escaped.
func (k *serverKeeper) pathOf(name string) *url.URL {
	return k.base.JoinPath("v1", "subscriptions", strings.ReplaceAll(url.PathEscape(name), ".", "%2E"))
}

// pages returns all of a list.
func pages[T any](ctx context.Context, k *serverKeeper, u *url.URL) ([]T, error) {
	all := []T{}
	err := eachOf(ctx, k, u, func(one T) error {
		all = append(all, one)
		return nil
	})
	return all, err
}

// eachOf follows the links of a list to its end, and calls take for each element.
func eachOf[T any](ctx context.Context, k *serverKeeper, u *url.URL, take func(T) error) error {
	u.RawQuery = fmt.Sprintf("limit=%d", pageLimit)
	for {
		var page httpapi.Page[T]
		if err := k.ask(ctx, http.MethodGet, u, nil, &page); err != nil {
			return err
		}
		for _, one := range page.Results {
			if err := take(one); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		next, ok := page.NextOf(u)
		if !ok {
			return fmt.Errorf("%s: the answer is no page: it goes on at %q", u, *page.Next)
		}
		u = next
	}
}

// ask sends a request, and reads the answer into a value unless that is nil.
func (k *serverKeeper) ask(ctx context.Context, method string, u *url.URL, body []byte, value any) error {
	request, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if k.token != "" {
		request.Header.Set("Authorization", "Bearer "+k.token)
	}
	response, err := k.client.Do(request)
	if err != nil {
		return k.failed(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", k.name(), err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: %w", k.name(), refusal(response, content))
	case value == nil:
		return nil
	}
	if err := json.Unmarshal(content, value); err != nil {
		return fmt.Errorf("%s: the answer cannot be understood: %w", u, err)
	}
	return nil
}

// refusal returns the error that an answer is.
func refusal(response *http.Response, content []byte) error {
	var p struct{ Type, Title, Detail string }
	if err := json.Unmarshal(content, &p); err != nil || p.Title == "" {
		return fmt.Errorf("got %s at %s, which is no answer of partita", response.Status, response.Request.URL.Path)
	}
	switch {
	case strings.HasSuffix(p.Type, "#not-handled"):
		return fmt.Errorf("%w: %s", errNotHandled, p.Detail)
	case strings.HasSuffix(p.Type, "#not-found"):
		return errors.New(p.Detail) // it says what is not there, in the words of a store that nobody has open
	}
	return fmt.Errorf("%s: %s", p.Title, p.Detail)
}
