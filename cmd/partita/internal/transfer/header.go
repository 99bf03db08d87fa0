package transfer

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt"
)

// Version is that of the files of events. Other ones are refused.
const Version = 1

// Header is what the first line of a file of events says.
type Header struct {
	// Descriptor is that of the store that was exported.
	Descriptor messages.Descriptor
	// Only is the part of the store that was exported.
	Only bolt.Part
	// Launches are those of the store's ids.db.
	Launches []uint32
	// Events is how many there are.
	Events uint64
}

// Whole reports whether all of the store was exported.
func (h *Header) Whole() bool { return len(h.Only.Partitions)+len(h.Only.Workspaces) == 0 }

type headerJSON struct {
	Version    int                `json:"partita_export"`
	Descriptor httpapi.Descriptor `json:"descriptor"`
	Only       *partJSON          `json:"only,omitempty"`
	Launches   []uint32           `json:"launches,omitempty"`
	Events     uint64             `json:"events"`
}

type partJSON struct {
	Partitions []messages.PartitionID `json:"partitions,omitempty"`
	Workspaces []wsJSON               `json:"workspaces,omitempty"`
}

// wsJSON is a workspace in a list.
type wsJSON struct {
	ID messages.WSID `json:"workspace,string"`
}

type endJSON struct {
	Events uint64 `json:"end"`
	SHA256 string `json:"sha256"`
}

func (h *Header) json() headerJSON {
	j := headerJSON{Version: Version, Descriptor: httpapi.DescriptorOf(&h.Descriptor), Launches: h.Launches, Events: h.Events}
	if !h.Whole() {
		j.Only = &partJSON{Partitions: h.Only.Partitions}
		for _, ws := range h.Only.Workspaces {
			j.Only.Workspaces = append(j.Only.Workspaces, wsJSON{ws})
		}
	}
	return j
}

// write returns the line without its end. It must be read as the same.
func (h *Header) write(w *writer) ([]byte, error) {
	j := h.json()
	line, err := w.document(&j)
	if err != nil {
		return nil, err
	}
	again, err := readHeader(w, line)
	if err == nil && !reflect.DeepEqual(again.json(), j) {
		err = errOtherForm
	}
	if err != nil {
		return nil, fmt.Errorf("the descriptor cannot be written as JSON: %w", err)
	}
	return line, nil
}

func readHeader(w *writer, content []byte) (Header, error) {
	var v struct {
		Version int `json:"partita_export"`
	}
	text := append(slices.Clip(content), '}')
	if err := json.Unmarshal(text, &v); err != nil || v.Version == 0 {
		return Header{}, errNoLine
	}
	if v.Version != Version {
		return Header{}, fmt.Errorf("version of the file: got %d, want %d", v.Version, Version)
	}
	var j headerJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return Header{}, err
	}
	h := Header{Launches: j.Launches, Events: j.Events}
	if j.Only != nil {
		h.Only.Partitions = j.Only.Partitions
		for _, ws := range j.Only.Workspaces {
			h.Only.Workspaces = append(h.Only.Workspaces, ws.ID)
		}
	}
	var err error
	if h.Descriptor, err = j.Descriptor.Read(); err != nil {
		return h, err
	}
	again := h.json()
	return h, w.mustBe(text, &again)
}

// document returns the JSON of a value without its closing brace. It is the caller's own.
func (w *writer) document(v any) ([]byte, error) {
	text, err := w.encode(v)
	if err != nil {
		return nil, err
	}
	return append([]byte(nil), text[:len(text)-1]...), nil
}
