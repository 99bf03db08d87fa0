package transfer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
)

// eventJSON is an event without what its store has given it. Outer members hide the inner ones of the same name.
type eventJSON struct {
	httpapi.Event
	Partition  *none `json:"partition,omitempty"`
	PLogOffset *none `json:"plog_offset,omitempty"`
}

// none is the value of a member that is never there.
type none struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*none) UnmarshalJSON([]byte) error { return errForeignMember }

var (
	errForeignMember = errors.New("partition and plog_offset are not an event's own")
	errOtherForm     = errors.New("it is not as it would be exported")
)

// writer encodes values, one after the other.
type writer struct {
	buf     bytes.Buffer
	encoder *json.Encoder
}

func newWriter() *writer {
	w := &writer{}
	w.encoder = json.NewEncoder(&w.buf)
	w.encoder.SetEscapeHTML(false)
	return w
}

// encode returns the JSON of a value. It is valid until the next call.
func (w *writer) encode(v any) ([]byte, error) {
	w.buf.Reset()
	if err := w.encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(w.buf.Bytes(), []byte("\n")), nil
}

func (w *writer) event(e *messages.Event) ([]byte, error) {
	if e.Kind != messages.EventBusiness {
		return nil, fmt.Errorf("event kind: got %d, want %d", e.Kind, messages.EventBusiness)
	}
	if err := httpapi.MayBeRead(e); err != nil {
		return nil, err
	}
	return w.encode(&eventJSON{Event: httpapi.EventOf(e, messages.Printer{})})
}

// readEvent reads an event of which w would write the same.
func (w *writer) readEvent(text []byte) (messages.Event, error) {
	var j eventJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return messages.Event{}, err
	}
	e, err := j.Read()
	if err != nil {
		return e, err
	}
	return e, w.mustBe(text, &eventJSON{Event: httpapi.EventOf(&e, messages.Printer{})})
}

// mustBe returns an error unless a value is written as a text.
func (w *writer) mustBe(text []byte, v any) error {
	again, err := w.encode(v)
	if err != nil || bytes.Equal(again, text) {
		return err
	}
	at := 0
	for at < min(len(again), len(text)) && again[at] == text[at] {
		at++
	}
	return fmt.Errorf("%w: got …%.40q, want …%.40q", errOtherForm, text[at:], again[at:])
}
