package config

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"text/template"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
)

// Example is the descriptor that a newcomer begins with.
func Example(application string) messages.Descriptor {
	yearly := messages.Restart{Rule: calendar.Rule{Every: calendar.Year}, Zone: "Europe/Zurich"}
	return messages.Descriptor{Application: application, Partitions: 4, Kinds: []messages.Kind{{ID: 1, Name: "shop", Sequences: []messages.Sequence{
		{ID: 16, Name: "invoice", Initial: 1, Restart: yearly, Formats: []string{"INV/{yyyy}/{n:04}"}},
		{ID: 17, Name: "customer", Initial: 10_001, Largest: 99_999},
	}}}}
}

//go:embed templates
var templates embed.FS

var files = template.Must(template.New("").Funcs(template.FuncMap{
	"text": tomlText, "number": tomlNumber, "byDefault": func(n messages.Number) bool { return n == 0 || n == messages.LargestDefault },
}).ParseFS(templates, "templates/*"))

// tomlText is a text as TOML has it, which is how JSON has it.
func tomlText(value any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(fmt.Sprint(value))
	return strings.TrimSuffix(b.String(), "\n"), err
}

// tomlNumber is a number as TOML has it, which has signed ones only: larger ones are texts.
func tomlNumber(n messages.Number) (string, error) {
	if n > math.MaxInt64 {
		return tomlText(n)
	}
	return n.String(), nil
}

// WriteDescriptor returns the file of a descriptor, which ReadDescriptor reads, with comments. Config is the path of the
// configuration that names it. It returns ErrConfig if a name in it is no text.
func WriteDescriptor(d *messages.Descriptor, config string) ([]byte, error) {
	var b bytes.Buffer
	err := files.ExecuteTemplate(&b, "application.toml", struct {
		httpapi.Descriptor
		Config string
	}{httpapi.DescriptorOf(d), config})
	if err != nil {
		return nil, err
	}
	document, err := parsers[".toml"].Unmarshal(b.Bytes())
	if err != nil {
		return nil, err
	}
	if again, err := descriptorOf(document); err != nil || !reflect.DeepEqual(again, d.Normalized()) {
		return nil, fmt.Errorf("%w: the descriptor cannot be written as text: is a name in it no text? %w", ErrConfig, err)
	}
	return b.Bytes(), nil
}

// Paths are those of the files of a server.
type Paths struct{ Config, DB, Descriptor string }

// beside returns a path as a configuration has it: what is in its directory, or below, is found wherever that is.
func (p *Paths) beside(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	if relative, err := filepath.Rel(filepath.Dir(p.Config), path); err == nil && filepath.IsLocal(relative) {
		return relative, nil
	}
	return filepath.Abs(path) // the directory may be a link, so that .. leads elsewhere
}

// WriteConfig returns the file of a configuration, which serves as all defaults have it, with comments. The paths are as
// whoever calls it has them.
func WriteConfig(p Paths) ([]byte, error) {
	db, err := p.beside(p.DB)
	if err != nil {
		return nil, err
	}
	descriptor, err := p.beside(p.Descriptor)
	if err != nil {
		return nil, err
	}
	dump, err := p.beside(filepath.Join(p.DB, "..", "messages.dump")) // no dump is within a store
	if err != nil {
		return nil, err
	}
	c := Default()
	c.complete()
	var b bytes.Buffer
	err = files.ExecuteTemplate(&b, "partita.toml", map[string]any{
		"Config": p.Config, "DB": db, "Descriptor": descriptor,
		"Listen": c.Listen, "Connections": c.Connections, "LogLevel": c.LogLevel, "LogFormat": c.LogFormat,
		"FlushInterval": c.Settings.FlushInterval, "TransactionLimit": c.Settings.TransactionLimit, "ClockJump": c.Settings.ClockJump,
		"Dump": dump, "Memory": c.Store.Memory, "MaxSize": c.Store.MaxSize,
	})
	return b.Bytes(), err
}
