package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/messages"
)

// ReadDescriptor returns the descriptor of an application that a file has, as TOML, YAML or JSON, with the members of the
// HTTP API. Initial is 1 if it is not there; it and largest may be numbers or texts. Largest may be the text "safe", or one
// as "7 digits". It returns ErrConfig.
func ReadDescriptor(path string) (d messages.Descriptor, err error) {
	parser, ok := parsers[filepath.Ext(path)]
	if !ok {
		return d, notParsed(path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return d, fmt.Errorf("%w: descriptor: %w", ErrConfig, err)
	}
	document, err := parser.Unmarshal(content)
	if err == nil {
		d, err = descriptorOf(document)
	}
	if err != nil {
		return d, fmt.Errorf("%w: %s: %w", ErrConfig, path, located(err))
	}
	return d, nil
}

// descriptorOf takes a document for what JSON would have.
func descriptorOf(document map[string]any) (d messages.Descriptor, err error) {
	for _, kind := range tables(document["kinds"]) {
		for _, sequence := range tables(kind["sequences"]) {
			if err := spellNumbers(sequence); err != nil {
				return d, err
			}
		}
	}
	text, err := json.Marshal(document)
	if err != nil {
		return d, err
	}
	var j httpapi.Descriptor
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&j); err != nil {
		return d, notWanted(err)
	}
	return j.Read()
}

// tables returns the elements of a list of tables.
func tables(list any) (all []map[string]any) {
	each, _ := list.([]any)
	for _, one := range each {
		if table, ok := one.(map[string]any); ok {
			all = append(all, table)
		}
	}
	return all
}

// spellNumbers makes texts of what JSON has as texts.
func spellNumbers(sequence map[string]any) error {
	if _, there := sequence["initial"]; !there {
		sequence["initial"] = "1"
	}
	for _, name := range []string{"initial", "largest"} {
		raw, there := sequence[name]
		if !there {
			continue
		}
		n, err := messages.ParseNumber(fmt.Sprint(raw))
		if named, isName := presets[fmt.Sprint(raw)]; isName && name == "largest" {
			n, err = named, nil
		}
		if i, notInt := parseInt(raw); notInt == nil && i >= 0 { // 1e6 is a number of JSON
			n, err = messages.Number(i), nil
		}
		if err != nil {
			return fmt.Errorf("%s of sequence %v: got %.40s, want a whole number", name, sequence["sequence"], fmt.Sprint(raw))
		}
		sequence[name] = n.String()
	}
	return nil
}

// presets are the names of largest numbers.
var presets = func() map[string]messages.Number {
	all := map[string]messages.Number{"safe": messages.LargestSafe, "1 digit": messages.LargestOfDigits(1)}
	for digits := 2; digits <= 18; digits++ {
		all[fmt.Sprintf("%d digits", digits)] = messages.LargestOfDigits(digits)
	}
	return all
}()

// notWanted says which member is of another kind than it should be.
func notWanted(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s: got a %s, want %s", wrong.Field, wrong.Value, wantedOf(wrong.Type))
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("%s: there is no such member", name)
	}
	return err
}

func wantedOf(t reflect.Type) string {
	switch v := reflect.Zero(t); {
	case t.Kind() == reflect.String:
		return "a text"
	case t.Kind() == reflect.Slice:
		return "a list"
	case v.CanUint():
		return fmt.Sprintf("a whole number, 0 to %d", uint64(1)<<t.Bits()-1)
	case v.CanInt():
		return "a whole number"
	}
	return "a table"
}
