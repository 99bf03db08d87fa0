package ids

import (
	"fmt"
	"log/slog"
)

// text is what both ids have in common as text. As with net/netip, the zero value, which is no id, is the empty text, in
// JSON too; to parse that is an error.

// String returns 16 hexadecimal digits in lower case, which sort as the numbers do. The zero value is the empty string.
func (t TraceID) String() string { return string(t.append(nil)) }

// String returns decimal digits: counter, 5 digits of the generator, 5 of the launch. The zero value is the empty string.
func (d DecimalID) String() string { return string(d.append(nil)) }

// AppendText implements [encoding.TextAppender]. It returns [ErrID] for what is neither an id nor the zero value.
func (t TraceID) AppendText(b []byte) ([]byte, error) { return appendText(b, t) }

// AppendText implements [encoding.TextAppender]. It returns [ErrID] for what is neither an id nor the zero value.
func (d DecimalID) AppendText(b []byte) ([]byte, error) { return appendText(b, d) }

// MarshalText implements [encoding.TextMarshaler], by which an id is a string in JSON. It returns [ErrID] as AppendText
// does.
func (t TraceID) MarshalText() ([]byte, error) { return appendText(nil, t) }

// MarshalText implements [encoding.TextMarshaler], by which an id is a string in JSON. It returns [ErrID] as AppendText
// does.
func (d DecimalID) MarshalText() ([]byte, error) { return appendText(nil, d) }

// UnmarshalText implements [encoding.TextUnmarshaler]. It returns [ErrID] for what is neither an id nor empty.
func (t *TraceID) UnmarshalText(text []byte) error { return unmarshalText(t, text, ParseTraceID) }

// UnmarshalText implements [encoding.TextUnmarshaler]. It returns [ErrID] for what is neither an id nor empty.
func (d *DecimalID) UnmarshalText(text []byte) error { return unmarshalText(d, text, ParseDecimalID) }

// LogValue implements [slog.LogValuer].
func (t TraceID) LogValue() slog.Value { return slog.StringValue(t.String()) }

// LogValue implements [slog.LogValuer].
func (d DecimalID) LogValue() slog.Value { return slog.StringValue(d.String()) }

type id interface {
	~uint64
	Validate() error
	append(b []byte) []byte
}

func appendText[T id](b []byte, n T) ([]byte, error) {
	if n == 0 {
		return b, nil
	}
	if err := n.Validate(); err != nil {
		return b, err
	}
	return n.append(b), nil
}

func unmarshalText[T id](n *T, text []byte, parse func(string) (T, error)) error {
	if len(text) == 0 {
		*n = 0
		return nil
	}
	parsed, err := parse(string(text))
	if err == nil {
		*n = parsed
	}
	return err
}

// badText says that text is not an id.
func badText(what, text, want string) error {
	return fmt.Errorf("%w: %s: got %.40q, want %s", ErrID, what, text, want)
}
