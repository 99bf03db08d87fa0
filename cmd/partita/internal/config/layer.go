package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/knadh/koanf/parsers/json"
	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// variablePrefix is what the names of variables of the environment begin with.
const variablePrefix = "PARTITA_"

// delimiter stands between the names of sections.
const delimiter = "."

// Where a setting comes from.
const (
	fromDefault     = "default"
	fromFile        = "file"
	fromEnvironment = "environment"
	fromFlag        = "flag"
)

// layer is what one source says.
type layer struct {
	source string
	// place says where a setting stands in it, for whoever has to change it.
	place  func(key string) string
	values map[string]any
	// dir is where its relative paths begin, "" if that is the working directory.
	dir string
}

// none is what a file says that is not there.
var none = layer{source: fromFile}

// parsers read what is in files, by what their names end with.
var parsers = map[string]koanf.Parser{".toml": toml.Parser(), ".yaml": yaml.Parser(), ".yml": yaml.Parser(), ".json": onceJSON{json.Parser()}}

// readFile returns what a file says.
func readFile(path string) (layer, error) {
	parser, ok := parsers[filepath.Ext(path)]
	if !ok {
		return none, notParsed(path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return none, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return parse(path, content, parser, filepath.Dir(path))
}

func notParsed(path string) error {
	return fmt.Errorf("%w: %s: want a file whose name ends with .toml, .yaml, .yml or .json", ErrConfig, path)
}

// parse returns what the content of a file in a directory says.
func parse(name string, content []byte, parser koanf.Parser, dir string) (layer, error) {
	k := koanf.New(delimiter)
	if err := k.Load(rawbytes.Provider(content), parser); err != nil {
		return none, fmt.Errorf("%w: %s: %w", ErrConfig, name, located(err))
	}
	return layer{fromFile, func(key string) string { return name + ": " + key }, k.All(), dir}, nil
}

// located says in which line of TOML an error is; YAML tells it itself.
func located(err error) error {
	var at interface{ Position() (row, column int) }
	if !errors.As(err, &at) {
		return err
	}
	row, _ := at.Position()
	return fmt.Errorf("line %d: %w", row, err)
}

// Document returns what a file says, as JSON of the same members.
func Document(path string) ([]byte, error) {
	l, err := readFile(path)
	if err != nil {
		return nil, err
	}
	k := koanf.New(delimiter)
	for key, value := range l.values {
		if err := k.Set(key, value); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, path, err)
		}
	}
	return k.Marshal(json.Parser())
}

// environment returns what variables say; empty ones say nothing. Others that begin as ours do are somebody else's.
func environment(lookup func(string) string) layer {
	l := layer{source: fromEnvironment, values: make(map[string]any)}
	variables := make(map[string]string)
	for _, s := range Default().settings() {
		variables[s.key] = s.variable()
		if value := lookup(s.variable()); value != "" {
			l.values[s.key] = text(value)
		}
	}
	l.place = func(key string) string { return variables[key] }
	return l
}

// flags returns what those flags say that were given.
func flags(set *pflag.FlagSet) layer {
	l := layer{source: fromFlag, place: func(key string) string { return "--" + strings.ReplaceAll(key, "_", "-") }, values: make(map[string]any)}
	for _, s := range Default().settings() {
		f := set.Lookup(s.flag())
		if f == nil || !f.Changed {
			continue
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			l.values[s.key] = list.GetSlice()
		} else {
			l.values[s.key] = text(f.Value.String())
		}
	}
	return l
}
