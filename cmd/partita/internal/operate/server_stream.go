package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/partita-go/partita/cmd/partita/internal/serve"
)

// operation is where a server answers an operation.
func (k *serverKeeper) operation(name string, query url.Values) *url.URL {
	u := k.base.JoinPath(serve.OperationsPath, name)
	u.RawQuery = query.Encode()
	return u
}

// answer asks for an operation that is answered with a value.
func (k *serverKeeper) answer(ctx context.Context, name string, query url.Values, value any) error {
	return k.ask(ctx, http.MethodGet, k.operation(name, query), nil, value)
}

// stream asks for an operation that writes, for as long as it takes. What is read ends with an error unless all was
// there.
func (k *serverKeeper) stream(ctx context.Context, name string, query url.Values) (io.ReadCloser, error) {
	u := k.operation(name, query)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if k.token != "" {
		request.Header.Set("Authorization", "Bearer "+k.token)
	}
	unlimited := *k.client
	unlimited.Timeout = 0
	response, err := unlimited.Do(request)
	if err != nil {
		return nil, k.failed(err)
	}
	if response.StatusCode == http.StatusOK {
		return &streamed{response: response, name: k.name()}, nil
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.name(), err)
	}
	return nil, fmt.Errorf("%s: %w", k.name(), refusal(response, content))
}

// name is what errors call the server.
func (k *serverKeeper) name() string {
	if k.place != "" {
		return k.place
	}
	return k.base.String()
}

// failed names the directory whose socket was asked; else the error names the URL.
func (k *serverKeeper) failed(err error) error {
	if k.place == "" {
		return err
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return fmt.Errorf("%s: %w", k.place, err)
}

// streamed is what a server writes.
type streamed struct {
	response *http.Response
	name     string
}

func (s *streamed) Read(b []byte) (int, error) {
	n, err := s.response.Body.Read(b)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%s: the answer was cut off", s.name)
	case errors.Is(err, io.EOF):
		if why := s.response.Trailer.Get(serve.ErrorTrailer); why != "" {
			err = fmt.Errorf("%s: the answer is not whole: %s", s.name, why)
		}
	case err != nil:
		err = fmt.Errorf("%s: %w", s.name, err)
	}
	return n, err
}

func (s *streamed) Close() error { return s.response.Body.Close() }
