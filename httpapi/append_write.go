package httpapi

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// appendJSON is the body of a request to append: a draft, or several.
type appendJSON struct {
	Kind     messages.WSKind      `json:"kind"`
	Expected *messages.WLogOffset `json:"expected_offset,string,omitempty"`
	*draftJSON
	Drafts []draftJSON `json:"drafts,omitempty"`
}

type draftJSON struct {
	Date       string            `json:"date,omitempty"`
	Zone       string            `json:"zone,omitempty"`
	Brought    []numberJSON      `json:"brought,omitempty"`
	Moves      []numberJSON      `json:"moves,omitempty"`
	Wanted     []wantedJSON      `json:"wanted,omitempty"`
	Records    []draftRecordJSON `json:"records,omitempty"`
	Body       json.RawMessage   `json:"body,omitempty"`
	BodyBase64 *string           `json:"body_base64,omitempty"`
}

type wantedJSON struct {
	Sequence messages.SeqID `json:"sequence"`
	Count    uint32         `json:"count,omitempty"`
}

type draftRecordJSON struct {
	NumberIndex *int             `json:"number_index,omitempty"`
	Sequence    messages.SeqID   `json:"sequence,omitempty"`
	Number      *messages.Number `json:"number,string,omitempty"`
	New         bool             `json:"new,omitempty"`
	dataJSON
}

// AppendBody returns the body of the request that appends one draft: what [API] reads of it is the same draft.
func AppendBody(to *partition.AppendTo, draft *partition.Draft) ([]byte, error) {
	one := draftOf(draft)
	return encode(appendJSON{Kind: to.Kind, Expected: to.Expected, draftJSON: &one})
}

// AppendAllBody is AppendBody for several drafts, at least one, that are appended together.
func AppendAllBody(to *partition.AppendTo, drafts []partition.Draft) ([]byte, error) {
	all := appendJSON{Kind: to.Kind, Expected: to.Expected}
	for i := range drafts {
		all.Drafts = append(all.Drafts, draftOf(&drafts[i]))
	}
	return encode(all)
}

// IdempotencyKey returns the header that a deduplication id is read from: a UUID.
func IdempotencyKey(id partition.DedupID) (name, value string) {
	h := hex.EncodeToString(id[:])
	return headerKey, fmt.Sprintf("%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
}

func draftOf(d *partition.Draft) draftJSON {
	body := contentOf(d.Body)
	j := draftJSON{
		Date: dateText(d.Date), Zone: d.Zone, Brought: numbersJSON(0, d.Brought, messages.Printer{}),
		Moves: numbersJSON(0, d.Moves, messages.Printer{}), Body: body.JSON, BodyBase64: body.Base64,
	}
	for _, w := range d.Wanted {
		j.Wanted = append(j.Wanted, wantedJSON{w.Seq, w.Count})
	}
	for i := range d.Records {
		j.Records = append(j.Records, draftRecordOf(&d.Records[i]))
	}
	return j
}

func draftRecordOf(r *partition.DraftRecord) draftRecordJSON {
	j := draftRecordJSON{New: r.New, dataJSON: dataOf(r.Data)}
	if r.ID == (messages.RecordID{}) {
		j.NumberIndex = &r.Number
	} else {
		j.Sequence, j.Number = r.ID.Seq, &r.ID.Number
	}
	return j
}

// Read returns where the event stands, as an append that was not sent over HTTP is answered.
func (j *Appended) Read() (a partition.Appended, err error) {
	a = partition.Appended{Partition: j.Partition, PLogOffset: j.PLogOffset, WLogOffset: j.WLogOffset, Repeated: j.Repeated}
	if a.RegisteredAt, err = readTime(j.RegisteredAt); err != nil {
		return a, err
	}
	a.Numbers, err = readNumbers(j.Numbers)
	return a, err
}
