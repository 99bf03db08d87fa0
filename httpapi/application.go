package httpapi

import (
	"net/http"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// Application is what the API tells of the application that it serves.
type Application struct {
	Descriptor
	Limits Limits `json:"limits"`
}

// Limits are what requests may have, and answers have, at the most.
type Limits struct {
	// Body is that of a request, in bytes.
	Body int64 `json:"body_bytes"`
	// Append is what one append takes, in bytes: the setting GroupBytes.
	Append int `json:"append_bytes"`
	// Numbers is how many one event can be given.
	Numbers int `json:"event_numbers"`
	// PageEvents and Page are how many events and, about, bytes a page has.
	PageEvents int `json:"page_events"`
	Page       int `json:"page_bytes"`
	// Wait is how long a request may wait for an event, in seconds.
	Wait int `json:"wait_seconds"`
	// LongPolls and Streams are how many of them there may be at the same time.
	LongPolls int `json:"long_polls"`
	Streams   int `json:"streams"`
}

func (a *API) application(c *call) error {
	return c.sendJSON(http.StatusOK, jsonType, &Application{DescriptorOf(&a.descriptor), Limits{
		Body: a.options.MaxBody, Append: a.app.Config().Settings.GroupBytes, Numbers: messages.MaxEventNumbers,
		PageEvents: maxLimit, Page: a.options.PageBytes, Wait: maxWait, LongPolls: a.options.LongPolls, Streams: a.options.Streams,
	}})
}

// Descriptor is that of an application as JSON has it, with the rules of its sequences.
type Descriptor struct {
	Application string              `json:"application"`
	Partitions  uint32              `json:"partitions"`
	TrustLevel  messages.TrustLevel `json:"trust_level"`
	Kinds       []Kind              `json:"kinds"`
}

// Kind is one of workspaces. The sequences that every kind has are not listed.
type Kind struct {
	ID        messages.WSKind `json:"kind"`
	Name      string          `json:"name"`
	Sequences []Sequence      `json:"sequences"`
}

// Sequence is one of a kind, see [messages.Sequence].
type Sequence struct {
	ID      messages.SeqID  `json:"sequence"`
	Name    string          `json:"name"`
	Initial messages.Number `json:"initial,string"`
	// Largest is 0 for the default.
	Largest messages.Number `json:"largest,string"`
	// Restart is nil if the sequence never restarts.
	Restart *Restart `json:"restart,omitempty"`
	Formats []string `json:"formats,omitempty"`
}

// Restart says when a sequence begins anew, see [messages.Restart].
type Restart struct {
	Every      string     `json:"every"`
	FirstMonth time.Month `json:"first_month"`
	Zone       string     `json:"zone"`
	Keep       int        `json:"keep"`
	Ahead      int        `json:"ahead"`
}

// DescriptorOf returns a descriptor as JSON has it.
func DescriptorOf(d *messages.Descriptor) Descriptor {
	j := Descriptor{Application: d.Application, Partitions: d.Partitions, TrustLevel: d.TrustLevel, Kinds: []Kind{}}
	for _, k := range d.Kinds {
		kind := Kind{ID: k.ID, Name: k.Name, Sequences: []Sequence{}}
		for i := range k.Sequences {
			s := &k.Sequences[i]
			sequence := Sequence{ID: s.ID, Name: s.Name, Initial: s.Initial, Largest: s.Largest, Formats: s.Formats}
			if r := &s.Restart; s.Restarts() {
				sequence.Restart = &Restart{Every: r.Every.String(), FirstMonth: r.FirstMonth, Zone: r.Zone, Keep: r.Keep, Ahead: r.Ahead}
			}
			kind.Sequences = append(kind.Sequences, sequence)
		}
		j.Kinds = append(j.Kinds, kind)
	}
	return j
}

// Read returns the descriptor, normalized. It returns ErrDescriptor of package messages, or an error that names a unit of
// time, unless it is valid.
func (j *Descriptor) Read() (d messages.Descriptor, err error) {
	d = messages.Descriptor{Application: j.Application, Partitions: j.Partitions, TrustLevel: j.TrustLevel}
	for i := range j.Kinds {
		kind := messages.Kind{ID: j.Kinds[i].ID, Name: j.Kinds[i].Name}
		for n := range j.Kinds[i].Sequences {
			s, err := j.Kinds[i].Sequences[n].read()
			if err != nil {
				return d, err
			}
			kind.Sequences = append(kind.Sequences, s)
		}
		d.Kinds = append(d.Kinds, kind)
	}
	if err := d.Validate(); err != nil {
		return d, err
	}
	return d.Normalized(), nil
}

func (j *Sequence) read() (s messages.Sequence, err error) {
	s = messages.Sequence{ID: j.ID, Name: j.Name, Initial: j.Initial, Largest: j.Largest, Formats: j.Formats}
	if r := j.Restart; r != nil {
		s.Restart = messages.Restart{Zone: r.Zone, Keep: r.Keep, Ahead: r.Ahead}
		s.Restart.FirstMonth = r.FirstMonth
		s.Restart.Every, err = calendar.ParseUnit(r.Every)
	}
	return s, err
}
