package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
)

// fill gives each field of a value something that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(t, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("Europe/Zurich")
	case reflect.Int64:
		v.SetInt(1_700_000_000_000_001)
	case reflect.Uint8, reflect.Uint16:
		v.SetUint(200)
	case reflect.Uint64:
		v.SetUint(math.MaxUint64)
		if v.Type() == reflect.TypeFor[ids.TraceID]() {
			v.SetUint(math.MaxInt64)
		}
	case reflect.Uint32:
		v.SetUint(20260329) // a date as well as any number
	default:
		t.Fatalf("no value is known for a %v", v.Type())
	}
}

// again writes an event as JSON, and reads it.
func again(t testing.TB, e *messages.Event) messages.Event {
	t.Helper()
	var line bytes.Buffer
	lines := json.NewEncoder(&line)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(EventOf(e, messages.Printer{})); err != nil {
		t.Fatal(err)
	}
	var j Event
	if err := json.Unmarshal(line.Bytes(), &j); err != nil {
		t.Fatalf("%v in %s", err, line.Bytes())
	}
	got, err := j.Read()
	if err != nil {
		t.Fatalf("%v in %s", err, line.Bytes())
	}
	return got
}

// The JSON form has every field of an event: whoever adds one must add it there.
func TestEveryFieldIsInJSON(t *testing.T) {
	var e messages.Event
	fill(t, reflect.ValueOf(&e).Elem())
	e.Kind = messages.EventBusiness // the only one
	e.Brought = 1                   // of two numbers
	if got := again(t, &e); !reflect.DeepEqual(got, e) {
		t.Errorf("got  %+v\nwant %+v", got, e)
	}
}

// Any event that can be told is read as it was.
func FuzzEventJSON(f *testing.F) {
	for _, body := range []string{"", "null", "{}", `{"a":"<b>\u2028"}`, `[1e400,-0.10]`, "\u2028", "\xff", " 1", `"\ud800"`, "1\n"} {
		f.Add([]byte(body), int64(0), uint64(1), true)
	}
	f.Add([]byte("x"), int64(-62_135_596_800_000_001), uint64(math.MaxUint64), false)
	f.Add([]byte("x"), int64(math.MaxInt64), uint64(0), false)
	f.Fuzz(func(t *testing.T, body []byte, at int64, n uint64, isNew bool) {
		e := messages.Event{
			Kind: messages.EventBusiness, RegisteredAt: messages.Timestamp(at), Workspace: messages.WSID(n), PLogOffset: messages.PLogOffset(n),
			Numbers: []messages.SequenceNumber{{Seq: 16, Number: messages.Number(n)}},
			Body:    body, Records: []messages.Record{{ID: messages.RecordID{Seq: 16, Number: messages.Number(n)}, New: isNew, Data: body}},
			Sections: []messages.Section{{Tag: 99, Data: body}},
		}
		if MayBeRead(&e) != nil {
			return
		}
		got := again(t, &e)
		if len(body) == 0 {
			e.Body, e.Records[0].Data, e.Sections[0].Data = nil, nil, nil
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("got  %+v\nwant %+v", got, e)
		}
	})
}
