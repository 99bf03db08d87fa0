package config

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"

	"github.com/knadh/koanf/parsers/json"
)

// onceJSON reads JSON, and refuses a name that an object has twice, as TOML and YAML do: of two values nobody can say
// which one was meant.
type onceJSON struct{ *json.JSON }

func (p onceJSON) Unmarshal(content []byte) (map[string]any, error) {
	values, err := p.JSON.Unmarshal(content)
	if err != nil {
		return nil, err
	}
	return values, checkOnce(stdjson.NewDecoder(bytes.NewReader(content)), "")
}

// checkOnce reads a value that is valid, whose place begins so.
func checkOnce(d *stdjson.Decoder, place string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	var seen map[string]bool
	switch token {
	case stdjson.Delim('{'):
		seen = make(map[string]bool)
	case stdjson.Delim('['):
	default:
		return nil
	}
	for i := 0; d.More(); i++ {
		name := fmt.Sprint(i)
		if seen != nil {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if name = fmt.Sprint(key); seen[name] {
				return fmt.Errorf("%.200s is there twice", place+name)
			}
			seen[name] = true
		}
		if err := checkOnce(d, place+name+delimiter); err != nil {
			return err
		}
	}
	_, err = d.Token() // the end of it
	return err
}
