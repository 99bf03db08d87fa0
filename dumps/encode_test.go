package dumps

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// bodyOf returns what a line shows of a message.
func bodyOf(t *testing.T, g Group, message any) string {
	t.Helper()
	line := lineBy(t, g, actors.Traffic{Key: actors.Key{Group: "g", ID: "k"}, Message: message})
	l, err := ParseLine([]byte(line))
	if err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	return string(l.Body)
}

// secretive is a message of an application.
type secretive struct {
	Name    string
	Card    string `dump:"hidden"`
	Pin     int    `dump:"hidden"`
	Data    []byte
	Next    *secretive
	private int
}

// TestHidden: bodies, records and what has the tag are not in the file, however they are referred to.
func TestHidden(t *testing.T) {
	const secret = "attack at dawn"
	for _, message := range []any{
		&messages.Append{Drafts: []messages.Draft{{Body: []byte(secret), Records: []messages.DraftRecord{{Data: []byte(secret)}}}}},
		&messages.Command{Body: []byte(secret)},
		&messages.WriteEvents{Events: []messages.Event{{
			Body: []byte(secret), Records: []messages.Record{{Data: []byte(secret)}}, Sections: []messages.Section{{Data: []byte(secret)}},
		}}},
		&messages.HandleBatch{Events: []messages.LogEvent{{Event: messages.Event{Body: []byte(secret)}}}},
		secretive{Name: "shown", Card: secret, Data: []byte(secret), Next: &secretive{Card: secret}},
	} {
		body := bodyOf(t, Group{}, message)
		if strings.Contains(body, secret) || strings.Contains(body, "YXR0YWNr") || !strings.Contains(body, hidden) {
			t.Errorf("got %s", body)
		}
	}
	shown := bodyOf(t, Group{Bodies: true}, &messages.Command{Body: []byte(secret)})
	if !strings.Contains(shown, `"Body":"`+secret+`"`) {
		t.Errorf("got %s", shown)
	}
	if got := bodyOf(t, Group{Bodies: true}, &messages.Command{Body: []byte{0xff, 0}}); !strings.Contains(got, `"Body":"base64:/wA="`) {
		t.Errorf("got %s", got)
	}
	got := bodyOf(t, Group{Bodies: true}, secretive{Name: "a", Card: secret, Pin: 4711, Data: []byte("b"), private: 1})
	if want := `{"Name":"a","Card":"<hidden>","Pin":"<hidden>","Data":"b"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTokensAreSecret: whoever reads a dump cannot end the transactions of others.
func TestTokensAreSecret(t *testing.T) {
	got := bodyOf(t, Group{Bodies: true}, &messages.Started{Token: messages.Token{Partition: 1, Secret: 123456789}})
	if strings.Contains(got, "123456789") || !strings.Contains(got, `"Secret":"<hidden>"`) {
		t.Errorf("got %s", got)
	}
}

// TestShown: what a message says.
func TestShown(t *testing.T) {
	expected := messages.WLogOffset(3)
	for _, tt := range []struct {
		message any
		want    string
	}{
		{&messages.Stop{}, `{}`},
		{&messages.TimerFired{Timer: messages.TimerFlush}, `{"Timer":0}`},
		{&messages.Refused{Err: errors.New(`no "way"` + "\n")}, `{"Err":"no \"way\"\u000a"}`},
		{&messages.Refused{}, `{}`},
		{
			&messages.Append{Workspace: math.MaxUint64, Kind: 1, DedupID: messages.DedupID{1, 0xff}, Expected: &expected, Deadline: 1_700_000_000_000_000},
			`{"Workspace":"18446744073709551615","Kind":1,"DedupID":"01ff0000000000000000000000000000","Expected":3,"Deadline":"2023-11-14T22:13:20Z"}`,
		},
		{&messages.CommandDone{IDs: map[messages.RawID]messages.RecordID{7: {Seq: 16, Number: 1}}},
			`{"Partition":0,"PLogOffset":0,"WLogOffset":0,"IDs":{"7":{"Seq":16,"Number":1}}}`},
		{struct {
			F float64
			D time.Duration
			E []error
			M map[string]any
			C chan int
		}{math.NaN(), time.Second, []error{errors.New("e"), nil}, map[string]any{"k": 1.5}, nil}, `{"F":"NaN","D":"1s","E":["e","<nil>"],"M":{"k":1.5}}`},
		{"text \x7f\u2028\xff", `"text \u007f\u2028` + "\ufffd" + `"`},
	} {
		if got := bodyOf(t, Group{}, tt.message); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// loop refers to itself.
type loop struct {
	Self any
	List []*loop
}

// panics cannot be shown.
type panics struct{}

func (*panics) Error() string { panic("no") }

// TestOddMessages: whatever a message is, its line is one.
func TestOddMessages(t *testing.T) {
	l := &loop{}
	l.Self, l.List = l, []*loop{l, nil}
	if got := bodyOf(t, Group{}, l); !strings.Contains(got, `"<deep>"`) || !strings.Contains(got, `"<nil>"`) {
		t.Errorf("got %s", got)
	}
	if got := bodyOf(t, Group{}, &messages.Refused{Err: &panics{}}); got != `"<panic: string>"` {
		t.Errorf("got %s", got)
	}
	for _, message := range []any{nil, (*messages.Append)(nil), messages.Append{}, func() {}, make(chan int), []any{nil}, map[any]any{1: nil}, new(int)} {
		bodyOf(t, Group{}, message)
	}
	// What the actor system has in its messages is its own.
	if got := bodyOf(t, Group{}, &actor.Failure{Reason: "x"}); got != "" {
		t.Errorf("got %s", got)
	}
}

// TestLong: what is long is cut, says so, and is still JSON.
func TestLong(t *testing.T) {
	const longest = 200
	g := Group{Bodies: true, Longest: longest}
	long := strings.Repeat("ü", longest)
	events := make([]messages.Event, 1000)
	for i := range events {
		events[i] = messages.Event{Workspace: 1, Body: []byte(long)}
	}
	for _, message := range []any{
		&messages.Command{Body: []byte(long)}, &messages.Command{Body: []byte(long + "\xff")},
		&messages.WriteEvents{Events: events}, &messages.Refused{Err: errors.New(long)},
		map[string]string{"a": long, "b": long, "c": long},
	} {
		got := bodyOf(t, g, message)
		if len(got) > 5*longest || !json.Valid([]byte(got)) {
			t.Errorf("got %d bytes: %s", len(got), got)
		}
		if !strings.Contains(got, "…") && !strings.Contains(got, " more>") {
			t.Errorf("does not say that it was cut: %s", got)
		}
	}
	if got := bodyOf(t, g, &messages.WriteEvents{Events: events}); !strings.Contains(got, `"<999 more>"`) {
		t.Errorf("got %s", got)
	}
}

// TestTimesOfLines: as time.Time has them, also when lines follow each other in a second, and when they do not.
func TestTimesOfLines(t *testing.T) {
	text := new(text)
	for _, at := range []time.Time{
		time.Unix(0, 0), time.Unix(0, 1), time.Unix(1_700_000_000, 999_999_999), time.Unix(1_700_000_000, 20), time.Unix(1_700_000_001, 20),
		time.Unix(0, 5).In(time.FixedZone("east", 3600)),
	} {
		text.bytes = text.bytes[:0]
		text.time(at)
		if got, want := string(text.bytes), at.UTC().Format(timeLayout); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
