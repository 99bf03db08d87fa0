package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// headerKey is the client's name for a request, so that it can be repeated.
const headerKey = "Idempotency-Key"

// maxKey is the longest key in bytes.
const maxKey = 255

// Appended says where an event stands, in the words of its JSON.
type Appended struct {
	Workspace    messages.WSID        `json:"workspace,string"`
	WLogOffset   messages.WLogOffset  `json:"wlog_offset,string"`
	Partition    messages.PartitionID `json:"partition"`
	PLogOffset   messages.PLogOffset  `json:"plog_offset,string"`
	RegisteredAt string               `json:"registered_at"`
	Numbers      []numberJSON         `json:"numbers"`
	// Repeated says that an earlier request with the same key wrote it.
	Repeated bool `json:"repeated"`
}

func (a *API) appendEvent(c *call) error {
	r, err := c.parseAppend()
	if err != nil {
		return err
	}
	sequencer, err := a.app.SequencerOf(r.to.Workspace)
	if err != nil {
		return err
	}
	// Not with the request: a client that only sends no more has not gone, but net/http takes
	// it so, and then the outcome would not be known.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.r.Context()), a.options.AppendTimeout)
	defer cancel()
	done, err := sequencer.AppendAll(ctx, r.to, r.drafts)
	if err != nil {
		return r.aboutRecord(err)
	}
	status := http.StatusCreated
	if done[0].Repeated {
		status = http.StatusOK
	}
	c.w.Header().Set("Location", strings.TrimSuffix(c.link(nil), "?")+"/"+done[0].WLogOffset.String())
	answer := AppendedAll{Results: make([]Appended, 0, len(done))}
	for i := range done {
		answer.Results = append(answer.Results, appendedOf(&r.to, &done[i], a.printer))
	}
	if r.together {
		return c.sendJSON(status, jsonType, &answer)
	}
	return c.sendJSON(status, jsonType, &answer.Results[0])
}

// AppendedAll says where several events stand, in their order, in the words of its JSON.
type AppendedAll struct {
	Results []Appended `json:"results"`
}

func appendedOf(to *partition.AppendTo, done *partition.Appended, p messages.Printer) Appended {
	return Appended{
		Workspace: to.Workspace, WLogOffset: done.WLogOffset, Partition: done.Partition, PLogOffset: done.PLogOffset,
		RegisteredAt: timeText(done.RegisteredAt), Numbers: numbersJSON(to.Kind, done.Numbers, p), Repeated: done.Repeated,
	}
}

// parseAppend reads the whole request.
func (c *call) parseAppend() (r request, err error) {
	if r.to.Workspace, err = c.workspace(); err != nil {
		return r, err
	}
	if r.to.DedupID, err = dedupID(c.r.Header.Values(headerKey)); err != nil {
		return r, err
	}
	body, err := c.body()
	if err != nil {
		return r, err
	}
	return r, c.api.decode(body, &r)
}

// aboutRecord names the record of the drafts that an error is about. A record that the
// caller wanted to create under an id of its own is told from one whose number the event
// was to be given: whoever wrote that one did not see to its sequence.
func (r *request) aboutRecord(err error) error {
	if ahead, ok := errors.AsType[*messages.RecordAheadError](err); ok {
		place, _ := r.recordOf(ahead.ID)
		return &problem{kind: invalidEvent, field: place + ".number", cause: messages.ErrRecordAhead, detail: ahead.Error()}
	}
	conflict, ok := errors.AsType[*storage.ConflictError](err)
	if !ok || conflict.Place != storage.PlaceRecord {
		return err
	}
	if place, ok := r.recordOf(conflict.Record); ok {
		return &problem{kind: recordExists, field: place, cause: storage.ErrConflict, detail: fmt.Sprintf("record %v exists already; nothing was written", conflict.Record)}
	}
	return &problem{kind: recordExists, field: "records", cause: storage.ErrConflict, detail: fmt.Sprintf("record %v was written, not as a new one, before its number was given out: "+
		"the event's number would be this one. An event that takes the number without a record, or a new record with a larger id, "+
		"lets the sequence go on; nothing was written", conflict.Record)}
}

// recordOf returns the member of the body that names a record.
func (r *request) recordOf(id messages.RecordID) (place string, ok bool) {
	for d := range r.drafts {
		i := slices.IndexFunc(r.drafts[d].Records, func(r partition.DraftRecord) bool { return r.ID == id })
		if i < 0 {
			continue
		}
		if place = fmt.Sprintf("records[%d]", i); r.together {
			place = fmt.Sprintf("drafts[%d].%s", d, place)
		}
		return place, true
	}
	return "records", false
}

// dedupID returns the deduplication id that a key stands for: a UUID is one itself, of
// anything else it is the beginning of its SHA-256.
func dedupID(keys []string) (id messages.DedupID, err error) {
	wrong := func(format string, args ...any) error {
		return &problem{kind: malformed, field: headerKey, detail: fmt.Sprintf(format, args...)}
	}
	if len(keys) == 0 {
		return id, nil
	}
	if len(keys) > 1 {
		return id, wrong("got %d keys, want one", len(keys))
	}
	key := keys[0]
	// The draft standard has it in quotes.
	if n := len(key); n >= 2 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	if key == "" || len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return id, wrong("got %d bytes, want 1 to %d, all of them printable ASCII", len(key), maxKey)
	}
	id, ok := parseUUID(key)
	if !ok {
		sum := sha256.Sum256([]byte(key))
		copy(id[:], sum[:])
	}
	if id.IsZero() {
		return id, wrong("the nil UUID is no key")
	}
	return id, nil
}

// parseUUID reads a UUID in its usual form.
func parseUUID(s string) (id messages.DedupID, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return id, false
	}
	n, err := hex.Decode(id[:], []byte(s[:8]+s[9:13]+s[14:18]+s[19:23]+s[24:]))
	if err != nil || n != len(id) {
		return messages.DedupID{}, false
	}
	return id, true
}
