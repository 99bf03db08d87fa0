package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestApplication: the application is told with all rules of its sequences, and the limits that requests have.
func TestApplication(t *testing.T) {
	r := newRig(t, Options{MaxBody: 1000, Streams: 3, LongPolls: 4, PageBytes: 5000}, func(a *partition.Application) { a.Settings.GroupBytes = 7000 })
	var got Application
	r.get("/v1/application").has(http.StatusOK).decode(&got)
	want := Limits{Body: 1000, Append: 7000, Numbers: 131072, PageEvents: 200, Page: 5000, Wait: 60, LongPolls: 4, Streams: 3}
	if got.Limits != want {
		t.Errorf("got %+v, want %+v", got.Limits, want)
	}
	d, err := got.Read()
	check(t, err)
	if whole := descriptor(); !reflect.DeepEqual(d, whole.Normalized()) {
		t.Errorf("got %+v, want %+v", d, whole)
	}
	r.get("/v1/application?x=1").problem(malformed, "x")
}

// TestDescriptorRead: what is no valid descriptor is an error that names it.
func TestDescriptorRead(t *testing.T) {
	for document, want := range map[string]string{
		`{"application": "a", "partitions": 0}`: "partitions: got 0",
		`{"application": "a", "partitions": 1, "kinds": [{"kind": 1, "sequences": [{"sequence": 16, "initial": "0"}]}]}`:                    "sequence 16: initial value: got 0",
		`{"application": "a", "partitions": 1, "kinds": [{"kind": 1, "sequences": [{"sequence": 16, "restart": {"every": "fortnight"}}]}]}`: `unit: got "fortnight"`,
	} {
		var j Descriptor
		check(t, json.Unmarshal([]byte(document), &j))
		_, err := j.Read()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", document, err, want)
		}
		if !strings.Contains(want, "unit") && !errors.Is(err, messages.ErrDescriptor) {
			t.Errorf("%s: got %v", document, err)
		}
	}
}
