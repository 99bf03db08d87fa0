package httpclient

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/ids"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// appender and reader are what a program can be given of both.
type appender interface {
	Append(ctx context.Context, to partition.AppendTo, draft partition.Draft) (*partition.Appended, error)
	AppendAll(ctx context.Context, to partition.AppendTo, drafts []partition.Draft) ([]partition.Appended, error)
}

type reader interface {
	PLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error]
	WLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error]
	PLogPage(ctx context.Context, p messages.PartitionID, from messages.PLogOffset, limit int) ([]messages.Event, error)
	WLogPage(ctx context.Context, ws messages.WSID, from messages.WLogOffset, limit int) ([]messages.Event, error)
	FollowPLog(ctx context.Context, p messages.PartitionID, from messages.PLogOffset) iter.Seq2[messages.Event, error]
	FollowWLog(ctx context.Context, ws messages.WSID, from messages.WLogOffset) iter.Seq2[messages.Event, error]
	PartitionEvent(ctx context.Context, p messages.PartitionID, offset messages.PLogOffset) (messages.Event, error)
	WorkspaceEvent(ctx context.Context, ws messages.WSID, offset messages.WLogOffset) (messages.Event, error)
	Record(ctx context.Context, ws messages.WSID, id messages.RecordID) (storage.Row, error)
	Records(ctx context.Context, ws messages.WSID, in storage.RecordRange) iter.Seq2[storage.Row, error]
}

var (
	_ appender = (*partition.Sequencer)(nil)
	_ appender = (*Client)(nil)
	_ reader   = (*partition.Reader)(nil)
	_ reader   = (*Client)(nil)
)

// TestSameResults: what the client reads is what a program that embeds partita reads.
func TestSameResults(t *testing.T) {
	r := newRig(t, httpapi.Options{PageBytes: 2000}, Options{})
	const n = 250 // more than a page has
	for i := range n {
		to := partition.AppendTo{Workspace: messages.WSID(1 + i%3), Kind: shop}
		done, err := r.Client.Append(r.ctx, to, invoice("1"))
		check(t, err)
		if want := messages.WLogOffset(1 + i/3); done.WLogOffset != want || done.Numbers[0].Number != messages.Number(want) || done.Repeated {
			t.Fatalf("got %+v", done)
		}
	}
	all := invoice(`{"not": "compact"}`)
	all.Records = append(all.Records, partition.DraftRecord{ID: messages.RecordID{Seq: invoices, Number: 2}, Data: []byte{0xff}})
	two, err := r.Client.AppendAll(r.ctx, partition.AppendTo{Workspace: 2, Kind: shop}, []partition.Draft{all, {}})
	check(t, err)
	if len(two) != 2 || two[1].WLogOffset != two[0].WLogOffset+1 || len(two[0].Numbers) != 1 || len(two[1].Numbers) != 0 {
		t.Errorf("got %+v", two)
	}
	letter := partition.Draft{Wanted: []partition.Wanted{{Seq: letters}}, Zone: "Europe/Zurich"}
	_, err = r.Client.Append(r.ctx, partition.AppendTo{Workspace: 9, Kind: office}, letter)
	check(t, err)
	for ws := range messages.WSID(10) {
		same(t, collect(r.Client.WLog(r.ctx, ws, 0)), collect(r.reader.WLog(r.ctx, ws, 0)))
		same(t, collect(r.Client.Records(r.ctx, ws, storage.RecordRange{Seq: invoices, From: 2, To: 77})),
			collect(r.reader.Records(r.ctx, ws, storage.RecordRange{Seq: invoices, From: 2, To: 77})))
		got, err := r.Client.Numbers(r.ctx, ws)
		check(t, err)
		want, err := r.reader.Numbers(r.ctx, ws)
		check(t, err)
		same(t, got.Numbers, want.Numbers)
		if got.Workspace != ws || got.Kind != want.Kind {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	same(t, collect(r.Client.WLog(r.ctx, 2, 5)), collect(r.reader.WLog(r.ctx, 2, 5)))
	for _, from := range []messages.WLogOffset{0, 2, 80} {
		got, err := r.Client.WLogPage(r.ctx, 2, from, 7)
		check(t, err)
		want, err := r.reader.WLogPage(r.ctx, 2, from, 7)
		check(t, err)
		same(t, got, want)
	}
	for p := range messages.PartitionID(3) {
		same(t, collect(r.Client.PLog(r.ctx, p, 3)), collect(r.reader.PLog(r.ctx, p, 3)))
		got, err := r.Client.PLogPage(r.ctx, p, 2, 7)
		check(t, err)
		want, err := r.reader.PLogPage(r.ctx, p, 2, 7)
		check(t, err)
		same(t, got, want)
	}
	id := messages.RecordID{Seq: invoices, Number: 2}
	row, err := r.Client.Record(r.ctx, 2, id)
	check(t, err)
	want, err := r.reader.Record(r.ctx, 2, id)
	check(t, err)
	same(t, row, want)
	states, err := r.Client.Status(r.ctx)
	check(t, err)
	if len(states) != 3 || states[1].State != messages.StateNormal || states[1].Partition != 1 || states[1].Last == 0 {
		t.Errorf("got %+v", states)
	}
	check(t, r.Client.Ready(r.ctx))
	application, err := r.Client.Application(r.ctx)
	check(t, err)
	served, err := application.Read()
	check(t, err)
	same(t, served, r.reader.Descriptor())
}

// TestBehindPrefix: pages go on at the client's own path, also if somebody between takes a prefix off it before the server
// sees it. What names no place, or another server, does not lead the client anywhere else.
func TestBehindPrefix(t *testing.T) {
	r := newRig(t, httpapi.Options{PageBytes: 500}, Options{})
	for range 5 {
		_, err := r.Client.Append(r.ctx, partition.AppendTo{Workspace: 1, Kind: shop}, invoice("1"))
		check(t, err)
	}
	var elsewhere atomic.Pointer[string]
	r.put(func(api http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			path, ok := strings.CutPrefix(request.URL.Path, "/shops")
			if !ok {
				http.NotFound(w, request)
				return
			}
			if next := elsewhere.Load(); next != nil {
				_, _ = fmt.Fprintf(w, `{"results": [{"sequence": 16, "number": "1", "data": 1, "partition": 1, "plog_offset": "1"}], "next": %q}`, *next)
				return
			}
			request.URL.Path, request.RequestURI = path, path+"?"+request.URL.RawQuery
			api.ServeHTTP(w, request)
		})
	})
	c, err := New(r.Client.base.String()+"/shops", Options{})
	check(t, err)
	defer c.Close()
	same(t, collect(c.WLog(r.ctx, 1, 0)), collect(r.reader.WLog(r.ctx, 1, 0)))
	in := storage.RecordRange{Seq: invoices, From: 1}
	same(t, collect(c.Records(r.ctx, 1, in)), collect(r.reader.Records(r.ctx, 1, in)))
	elsewhere.Store(new("/shops/v1/log"))
	if all := collect(c.Records(r.ctx, 1, in)); !strings.Contains(fmt.Sprint(all[len(all)-1]), "is no page") {
		t.Errorf("got %v", all)
	}
}

// collect returns all of a sequence, and the error with which it ended.
func collect[T any](all iter.Seq2[T, error]) (list []any) {
	for one, err := range all {
		if list = append(list, one); err != nil {
			list = append(list, err)
		}
	}
	return list
}

// same compares what is shown: no bytes and no slice are the same.
func same(t *testing.T, got, want any) {
	t.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Fatalf("got\n%.2000s\nwant\n%.2000s", g, w)
	}
}

// sentinels are errors that an append or a reader can have.
var sentinels = []error{
	messages.ErrDraft, messages.ErrUnknownKind, messages.ErrUnknownSequence, messages.ErrKindMismatch, messages.ErrExplicitID,
	messages.ErrTooManyNumbers, messages.ErrOverflow, messages.ErrBackward, messages.ErrBusinessDate, messages.ErrRecordAhead,
	messages.ErrTooLarge, messages.ErrExpectedOffset, messages.ErrDedupMismatch, messages.ErrBusy, messages.ErrOutcomeUnknown,
	storage.ErrConflict, storage.ErrInvalidEvent, calendar.ErrZone, calendar.ErrZoneChange, partition.ErrNoEvent, partition.ErrNoRecord,
	partition.ErrCursor,
}

// TestSameErrors: errors.Is finds the same with the client as without it.
func TestSameErrors(t *testing.T) {
	r := newRig(t, httpapi.Options{}, Options{})
	at := partition.AppendTo{Workspace: 1, Kind: shop, DedupID: partition.DedupID{1}}
	_, err := r.Client.Append(r.ctx, at, invoice("1"))
	check(t, err)
	sequencer, err := r.App.SequencerOf(1)
	check(t, err)
	future, err := calendar.ParseDate("2999-01-01")
	check(t, err)
	for name, tt := range map[string]struct {
		to    func(*partition.AppendTo)
		draft partition.Draft
		want  error
	}{
		"kind":     {func(to *partition.AppendTo) { to.Kind = 99 }, partition.Draft{}, messages.ErrUnknownKind},
		"mismatch": {func(to *partition.AppendTo) { to.Kind = depot }, partition.Draft{}, messages.ErrKindMismatch},
		"expected": {func(to *partition.AppendTo) { to.Expected = new(messages.WLogOffset(5)) }, partition.Draft{}, messages.ErrExpectedOffset},
		"dedup":    {func(to *partition.AppendTo) { to.DedupID = partition.DedupID{1} }, partition.Draft{}, messages.ErrDedupMismatch},
		"sequence": {nil, partition.Draft{Wanted: []partition.Wanted{{Seq: 99}}}, messages.ErrUnknownSequence},
		"numbers":  {nil, partition.Draft{Wanted: []partition.Wanted{{Seq: invoices, Count: messages.MaxEventNumbers + 1}}}, messages.ErrTooManyNumbers},
		"overflow": {nil, partition.Draft{Wanted: []partition.Wanted{{Seq: rare, Count: 2}}}, messages.ErrOverflow},
		"backward": {nil, partition.Draft{Brought: []messages.SequenceNumber{{Seq: invoices, Number: 1}}}, messages.ErrBackward},
		"ahead":    {nil, partition.Draft{Records: []partition.DraftRecord{{ID: messages.RecordID{Seq: invoices, Number: 9}}}}, messages.ErrRecordAhead},
		"exists":   {nil, partition.Draft{Records: []partition.DraftRecord{{ID: messages.RecordID{Seq: invoices, Number: 1}, New: true}}}, storage.ErrConflict},
		"index":    {nil, partition.Draft{Records: []partition.DraftRecord{{Number: 3}}}, messages.ErrDraft},
		"zone":     {nil, partition.Draft{Zone: "Nowhere/Land"}, calendar.ErrZone},
		"date": {func(to *partition.AppendTo) { to.Workspace, to.Kind = 1+3*5, office },
			partition.Draft{Date: future, Wanted: []partition.Wanted{{Seq: letters}}}, messages.ErrBusinessDate},
	} {
		t.Run(name, func(t *testing.T) {
			to := partition.AppendTo{Workspace: 1, Kind: shop}
			if tt.to != nil {
				tt.to(&to)
			}
			own, err := r.App.SequencerOf(to.Workspace)
			check(t, err)
			_, want := own.Append(r.ctx, to, tt.draft)
			_, got := r.Client.Append(r.ctx, to, tt.draft)
			if !errors.Is(want, tt.want) {
				t.Errorf("embedded: got %v, want %v", want, tt.want)
			}
			for _, s := range sentinels {
				if errors.Is(got, s) != errors.Is(want, s) {
					t.Errorf("got %v, embedded %v: they differ in %v", got, want, s)
				}
			}
		})
	}
	var offset, want *messages.OffsetError
	to := partition.AppendTo{Workspace: 1, Kind: shop, Expected: new(messages.WLogOffset(5))}
	_, got := r.Client.Append(r.ctx, to, partition.Draft{})
	_, embedded := sequencer.Append(r.ctx, to, partition.Draft{})
	if !errors.As(got, &offset) || !errors.As(embedded, &want) || *offset != *want {
		t.Errorf("got %+v, want %+v", offset, want)
	}
	_, got = r.Client.AppendAll(r.ctx, to, nil)
	_, err = r.Client.WorkspaceEvent(r.ctx, 1, 9)
	_, err2 := r.Client.PartitionEvent(r.ctx, 1, math.MaxUint64)
	_, err3 := r.Client.Record(r.ctx, 1, messages.RecordID{Seq: invoices, Number: 9})
	_, err4 := r.Client.Feed("AAAA").Page(r.ctx, 1)
	_, err5 := r.Client.PLogPage(r.ctx, 7, 1, 1)
	for i, pair := range [][2]error{
		{got, messages.ErrDraft}, {err, partition.ErrNoEvent}, {err2, partition.ErrNoEvent}, {err3, partition.ErrNoRecord}, {err4, partition.ErrCursor},
		{err5, partition.ErrUnknownPartition},
	} {
		if !errors.Is(pair[0], pair[1]) {
			t.Errorf("%d: got %v, want %v", i, pair[0], pair[1])
		}
	}
}

// TestTrace: a request is of the trace that its context names.
func TestTrace(t *testing.T) {
	fake := &answering{answers: []func(*http.Request) (*http.Response, error){says(200, `{"status":"ok"}`)}}
	c, err := New("http://localhost:1/prefix", Options{Transport: fake, Token: "a-token"})
	check(t, err)
	check(t, c.Ready(ids.ContextWithTrace(t.Context(), 0x0123456789abcdef)))
	h := fake.asked[0].Header
	if fake.asked[0].URL.Path != "/prefix/readyz" || h.Get(headerTrace) != "0123456789abcdef" || h.Get("Authorization") != "Bearer a-token" {
		t.Errorf("got %s, %v", fake.asked[0].URL, h)
	}
}

// TestOptions: a wrong address is refused at once, and a token is not sent where anybody can read it.
func TestOptions(t *testing.T) {
	for _, server := range []string{"", "localhost:7420", "ftp://localhost", "http://", "http://u:p@localhost", "http://localhost?x=1", "http://localhost#x", ":"} {
		if _, err := New(server, Options{}); !errors.Is(err, ErrOptions) {
			t.Errorf("%q: got %v", server, err)
		}
	}
	for server, want := range map[string]error{
		"http://example.com": ErrOptions, "https://example.com": nil, "http://127.0.0.2:1": nil, "http://[::1]": nil, "http://localhost": nil,
	} {
		if _, err := New(server, Options{Token: "a-token"}); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", server, err, want)
		}
	}
	if _, err := New("http://localhost", Options{MaxDelay: -1}); !errors.Is(err, ErrOptions) {
		t.Errorf("got %v", err)
	}
}

// TestFeed: pages and a tail of all partitions go on from one another's cursors.
func TestFeed(t *testing.T) {
	r := newRig(t, httpapi.Options{}, Options{})
	const n = 30
	for i := range n {
		_, err := r.Client.Append(r.ctx, partition.AppendTo{Workspace: messages.WSID(1 + i%7), Kind: shop}, invoice("1"))
		check(t, err)
	}
	feed := r.Client.Feed("")
	var got []messages.Event
	for len(got) < 20 {
		page, err := feed.Page(r.ctx, 8)
		check(t, err)
		got = append(got, page...)
		feed = r.Client.Feed(feed.Cursor())
	}
	for e, err := range feed.Follow(r.ctx) {
		check(t, err)
		got = append(got, e)
		if len(got) == n {
			break
		}
	}
	last := feed.Cursor()
	if page, err := feed.Page(r.ctx, 8); err != nil || len(page) != 0 || feed.Cursor() != last {
		t.Errorf("got %d events, %v", len(page), err)
	}
	next := make([]messages.PLogOffset, 3)
	for _, e := range got {
		if next[e.Partition]++; next[e.Partition] != e.PLogOffset {
			t.Errorf("partition %d: got offset %d, want %d", e.Partition, e.PLogOffset, next[e.Partition])
		}
	}
	if cursor, err := r.reader.ParseCursor(last); err != nil || cursor.String() != last || slices.Contains(next, 0) {
		t.Errorf("got %v, %v", err, next)
	}
}
