package transfer

import (
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// descriptorJSON is a descriptor, with all rules.
type descriptorJSON struct {
	Application string              `json:"application"`
	Partitions  uint32              `json:"partitions"`
	TrustLevel  messages.TrustLevel `json:"trust_level"`
	Kinds       []kindJSON          `json:"kinds"`
}

type kindJSON struct {
	ID        messages.WSKind `json:"kind"`
	Name      string          `json:"name"`
	Sequences []sequenceJSON  `json:"sequences"`
}

type sequenceJSON struct {
	ID      messages.SeqID  `json:"sequence"`
	Name    string          `json:"name"`
	Initial messages.Number `json:"initial,string"`
	Largest messages.Number `json:"largest,string"`
	Restart *restartJSON    `json:"restart,omitempty"`
	Formats []string        `json:"formats,omitempty"`
}

type restartJSON struct {
	Every      string     `json:"every"`
	FirstMonth time.Month `json:"first_month"`
	Zone       string     `json:"zone"`
	Keep       int        `json:"keep"`
	Ahead      int        `json:"ahead"`
}

func descriptorOf(d *messages.Descriptor) descriptorJSON {
	j := descriptorJSON{Application: d.Application, Partitions: d.Partitions, TrustLevel: d.TrustLevel, Kinds: []kindJSON{}}
	for _, k := range d.Kinds {
		kind := kindJSON{ID: k.ID, Name: k.Name, Sequences: []sequenceJSON{}}
		for i := range k.Sequences {
			s := &k.Sequences[i]
			sequence := sequenceJSON{ID: s.ID, Name: s.Name, Initial: s.Initial, Largest: s.Largest, Formats: s.Formats}
			if r := &s.Restart; s.Restarts() {
				sequence.Restart = &restartJSON{Every: r.Every.String(), FirstMonth: r.FirstMonth, Zone: r.Zone, Keep: r.Keep, Ahead: r.Ahead}
			}
			kind.Sequences = append(kind.Sequences, sequence)
		}
		j.Kinds = append(j.Kinds, kind)
	}
	return j
}

// read returns the descriptor, which is valid.
func (j *descriptorJSON) read() (d messages.Descriptor, err error) {
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

func (j *sequenceJSON) read() (s messages.Sequence, err error) {
	s = messages.Sequence{ID: j.ID, Name: j.Name, Initial: j.Initial, Largest: j.Largest, Formats: j.Formats}
	if r := j.Restart; r != nil {
		s.Restart = messages.Restart{Zone: r.Zone, Keep: r.Keep, Ahead: r.Ahead}
		s.Restart.FirstMonth = r.FirstMonth
		s.Restart.Every, err = calendar.ParseUnit(r.Every)
	}
	return s, err
}
