package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// TestDrafts: several events are appended together, and records refer to the numbers of drafts before them.
func TestDrafts(t *testing.T) {
	r := newRig(t, Options{})
	const body = `{"kind": 1, "expected_offset": "0", "drafts": [
		{"wanted": [{"sequence": 16, "count": 2}], "body": "two"},
		{"wanted": [{"sequence": 16}], "records": [{"number_index": 1, "new": true, "data": "of the first"}, {"number_index": 2, "new": true}], "body": 2},
		{}]}`
	const answer = `{"results":[` +
		`{"workspace":"42","wlog_offset":"1","partition":2,"plog_offset":"1","registered_at":"TIME","numbers":[{"sequence":16,"number":"1"},{"sequence":16,"number":"2"}],"repeated":false},` +
		`{"workspace":"42","wlog_offset":"2","partition":2,"plog_offset":"2","registered_at":"TIME","numbers":[{"sequence":16,"number":"3"}],"repeated":false},` +
		`{"workspace":"42","wlog_offset":"3","partition":2,"plog_offset":"3","registered_at":"TIME","numbers":[],"repeated":false}]}`
	a := r.post(42, body, headerKey, "three").timeless()
	a.is(http.StatusCreated, answer)
	if got := a.header.Get("Location"); got != "/v1/workspaces/42/events/1" {
		t.Errorf("got location %q", got)
	}
	check(t, r.contract.valid(pointer{"components", "schemas", "Append"}, []byte(body)))
	r.post(42, body, headerKey, "three").timeless().is(http.StatusOK, strings.ReplaceAll(answer, `"repeated":false`, `"repeated":true`))
	r.get("/v1/workspaces/42/records/16/2").is(http.StatusOK, `{"sequence":16,"number":"2","data":"of the first","partition":2,"plog_offset":"2"}`)
	// One in a list is answered by a list.
	if got := r.post(42, `{"kind": 1, "drafts": [{}]}`).has(http.StatusCreated).body; !strings.HasPrefix(got, `{"results":[{`) {
		t.Errorf("got %s", got)
	}
	for body, field := range map[string]string{
		`{"kind": 1, "drafts": []}`:             "drafts",
		`{"kind": 1, "drafts": {}}`:             "drafts",
		`{"kind": 1, "drafts": null}`:           "drafts",
		`{"kind": 1, "drafts": [1]}`:            "drafts[0]",
		`{"kind": 1, "drafts": [{}], "body":1}`: "body",
		`{"kind": 1, "drafts": [{"kind": 1}]}`:  "drafts[0].kind",
		`{"kind": 1, "drafts": [{"wanted": [{"sequence": 16}]}, {"records": [{"number_index": 1}]}]}`: "drafts[1].records[0].number_index",
		`{"kind": 1, "drafts": [{}, {"records": [{"sequence": 16, "number": "9"}]}]}`:                 "drafts[1].records[0].number",
		`{"kind": 1, "drafts": [{}, {"wanted": [{"sequence": 99}]}]}`:                                 "drafts[1].wanted[0].sequence",
	} {
		r.post(42, body).problem(invalidEvent, field)
	}
	r.post(42, `{"kind": 1, "drafts": [{}, {"records": [{"sequence": 16, "number": "2", "new": true}]}]}`).problem(recordExists, "drafts[1].records[0]")
	if got := len(r.logged(42)); got != 4 {
		t.Errorf("got %d events, want 4: what was refused has left something", got)
	}
}

// TestKindByName: a kind has an id and a name.
func TestKindByName(t *testing.T) {
	r := newRig(t, Options{})
	r.post(42, `{"kind": "shop", "wanted": [{"sequence": 16}]}`).has(http.StatusCreated)
	r.post(42, `{"kind": 1, "wanted": [{"sequence": 16}]}`).has(http.StatusCreated)
	r.post(43, `{"kind": "depot"}`).has(http.StatusCreated)
	for kind, detail := range map[string]string{
		`"Shop"`: `no workspace kind \"Shop\"`, `""`: `no workspace kind \"\"`, `"1"`: `no workspace kind \"1\"`,
		`7`: "no workspace kind 7", `1.5`: "a number from 1 to 65535, or a name", `null`: "a number from 1 to 65535, or a name",
	} {
		if a := r.post(42, `{"kind": `+kind+`}`).problem(invalidEvent, "kind"); !strings.Contains(a.body, detail) {
			t.Errorf("kind %s: got %s, want %q in it", kind, a.body, detail)
		}
	}
}

// TestTooManyDrafts: a list of more drafts than one append takes is refused before they are read.
func TestTooManyDrafts(t *testing.T) {
	r := newRig(t, Options{})
	most := r.app.Config().Settings.GroupBytes / leastDraft
	body := fmt.Sprintf(`{"kind": 1, "drafts": [{}%s]}`, strings.Repeat(",{}", most))
	var read request
	err := r.api.decode([]byte(body), &read)
	if p := problemOf(err); p.kind != tooLarge || p.field != "drafts" || !errors.Is(p.cause, messages.ErrTooLarge) || len(read.drafts) > most {
		t.Errorf("got %v, %d drafts", err, len(read.drafts))
	}
	r.post(42, body).problem(tooLarge, "drafts")
}

// TestMissingIsToldFromUnknown: a member that is missing, and one that is not known, are told as such.
func TestMissingIsToldFromUnknown(t *testing.T) {
	r := newRig(t, Options{})
	for body, want := range map[string]string{
		`{}`:                          `"detail":"it is missing","field":"kind"`,
		`{"kind": 1, "Body": 1}`:      `"detail":"unknown member","field":"Body"`,
		`{"kind": 1, "wanted": [{}]}`: `"detail":"it is missing","field":"wanted[0].sequence"`,
		`{"kind": 1, "wanted": [{"sequence": 16, "n": 1}]}`: `"detail":"unknown member","field":"wanted[0].n"`,
		`{"kind": 1, "moves": [{"sequence": 16}]}`:          `"detail":"it is missing","field":"moves[0].number"`,
	} {
		if a := r.post(42, body).has(http.StatusUnprocessableEntity); !strings.Contains(a.body, want) {
			t.Errorf("%s: got %s, want %s in it", body, a.body, want)
		}
	}
}

// TestAppendBody: what a client writes of drafts, the server reads as the same drafts.
func TestAppendBody(t *testing.T) {
	r := newRig(t, Options{})
	date, err := calendar.ParseDate("2026-03-04")
	check(t, err)
	data := rapid.SampledFrom([][]byte{nil, []byte("null"), []byte(`{"a":[1,"<é>"]}`), []byte(`{"a": 1}`), {0xff, 0}, []byte(`"x"`)})
	numbers := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) messages.SequenceNumber {
		return messages.SequenceNumber{Seq: invoices, Number: messages.Number(rapid.Uint64Range(1, 1<<62).Draw(t, "number"))}
	}), 0, 2)
	drafts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) partition.Draft {
		d := partition.Draft{Brought: numbers.Draw(t, "brought"), Moves: numbers.Draw(t, "moves"), Body: data.Draw(t, "body")}
		if rapid.Bool().Draw(t, "dated") {
			d.Date, d.Zone = date, "Europe/Zurich"
		}
		for range rapid.IntRange(0, 2).Draw(t, "wanted") {
			d.Wanted = append(d.Wanted, partition.Wanted{Seq: invoices, Count: uint32(rapid.IntRange(1, 3).Draw(t, "count"))})
		}
		for i := range d.Count() {
			d.Records = append(d.Records, partition.DraftRecord{Number: i, New: rapid.Bool().Draw(t, "new"), Data: data.Draw(t, "data")})
		}
		if rapid.Bool().Draw(t, "named") {
			d.Records = append(d.Records, partition.DraftRecord{ID: messages.RecordID{Seq: invoices, Number: 7}, Data: []byte("1")})
		}
		return d
	}), 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		want := request{to: partition.AppendTo{Kind: shop}, drafts: drafts.Draw(t, "drafts"), together: rapid.Bool().Draw(t, "together")}
		if rapid.Bool().Draw(t, "expected") {
			want.to.Expected = new(messages.WLogOffset(rapid.Uint64().Draw(t, "offset")))
		}
		want.together = want.together || len(want.drafts) > 1
		body, err := AppendBody(&want.to, &want.drafts[0])
		if want.together {
			body, err = AppendAllBody(&want.to, want.drafts)
		}
		if err != nil {
			t.Fatal(err)
		}
		var got request
		if err := r.api.decode(body, &got); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if g, w := plain(&got), plain(&want); g != w {
			t.Fatalf("%s: got\n%s\nwant\n%s", body, g, w)
		}
		if err := r.contract.valid(pointer{"components", "schemas", "Append"}, body); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
	})
}

// plain shows a request; no list and an empty one are the same.
func plain(r *request) string {
	expected := "any"
	if r.to.Expected != nil {
		expected = r.to.Expected.String()
	}
	return fmt.Sprintf("%v %v %v %v %+v", r.to.Kind, expected, r.together, len(r.drafts), r.drafts)
}

// TestIdempotencyKey: a deduplication id goes through the header as it is.
func TestIdempotencyKey(t *testing.T) {
	id := partition.DedupID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 15: 0x10}
	name, value := IdempotencyKey(id)
	if got, err := dedupID([]string{value}); name != headerKey || got != id || err != nil {
		t.Errorf("got %s: %s, %v, %v", name, value, got, err)
	}
}

// TestProblemsAreRead: each error that is answered is read as the same error, with what the answer says of it.
func TestProblemsAreRead(t *testing.T) {
	for _, a := range answers {
		b, err := encode(problemOf(a.err))
		check(t, err)
		p, ok := ReadProblem(b)
		if causeName(a.err) == "" && (errors.Is(a.err, context.DeadlineExceeded) || errors.Is(a.err, context.Canceled)) {
			continue // of the server's own contexts
		}
		if !ok || !isCause(p, a.err) || p.Kind() != a.kind.name || p.Status != a.kind.status {
			t.Errorf("%v: got %+v, %v", a.err, p, p.Unwrap())
		}
	}
	text, err := os.ReadFile("../docs/errors.md")
	check(t, err)
	for _, c := range causes {
		if !strings.Contains(string(text), "### "+c.name+"\n") {
			t.Errorf("%s is not in docs/errors.md", c.name)
		}
		if name := causeName(c.err); name != c.name {
			t.Errorf("%s: got name %s", c.name, name)
		}
	}
	year, err := calendar.ParseDate("2026-01-01")
	check(t, err)
	for _, want := range []error{
		&messages.OffsetError{Got: 7},
		&messages.OverflowError{Seq: invoices, Name: "Invoice", Largest: 9},
		&messages.BackwardError{Seq: invoices, Name: "Invoice", Period: year, Last: 3},
	} {
		b, err := encode(problemOf(want))
		check(t, err)
		p, _ := ReadProblem(b)
		if got := p.Unwrap(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, want %#v", got, want)
		}
	}
	for _, text := range []string{"", "{}", "[]", `{"title": "x"}`, `{"title": 1, "status": 400}`, "<html>"} {
		if p, ok := ReadProblem([]byte(text)); ok {
			t.Errorf("%s: got %+v", text, p)
		}
	}
}

func isCause(p *ProblemError, err error) bool {
	return p.Cause == causeName(err) && p.Cause != "" && strings.HasPrefix(fmt.Sprint(p.Unwrap()), err.Error())
}
