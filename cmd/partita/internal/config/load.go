package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

// ErrConfig says that a configuration is wrong.
var ErrConfig = errors.New("bad configuration")

// Source is where a configuration comes from. It never changes, but its file may.
type Source struct {
	file string
	// above goes before the file, the last one before all.
	above []layer
}

// NewSource returns where a server has its configuration from: a file, if it is not "", variables of the environment, and
// flags, which may be nil.
func NewSource(file string, lookup func(string) string, set *pflag.FlagSet) *Source {
	s := &Source{file: file, above: []layer{environment(lookup)}}
	if set != nil {
		s.above = append(s.above, flags(set))
	}
	return s
}

// Load reads the file. It returns ErrConfig with all that is wrong.
func (s *Source) Load() (*Loaded, error) {
	below := none
	if s.file != "" {
		var err error
		if below, err = readFile(s.file); err != nil {
			return nil, err
		}
	}
	return load(append([]layer{below}, s.above...))
}

// LoadDocument takes a document of JSON in place of the file, beside which its relative paths are.
func (s *Source) LoadDocument(document []byte) (*Loaded, error) {
	below, err := parse("the document", document, parsers[".json"], filepath.Dir(s.file))
	if err != nil {
		return nil, err
	}
	return load(append([]layer{below}, s.above...))
}

// Loaded is a configuration that is valid, and where each setting comes from.
type Loaded struct {
	Config *Config
	given  map[string]given
}

// given says where a setting was given.
type given struct{ source, place string }

func load(layers []layer) (*Loaded, error) {
	l := &Loaded{Config: Default(), given: make(map[string]given)}
	settings := l.Config.settings()
	errs := unknown(layers, settings)
	byKey := make(map[string]setting)
	for _, s := range settings {
		byKey[s.key] = s
		if s.from != "" {
			s.value.Set(byKey[s.from].value)
		}
		for _, layer := range slices.Backward(layers) {
			raw, ok := layer.values[s.key]
			if !ok {
				continue
			}
			l.given[s.key] = given{layer.source, layer.place(s.key)}
			if err := s.set(raw); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", layer.place(s.key), err))
			}
			s.locate(layer.dir)
			break
		}
	}
	l.Config.complete()
	if errs = append(errs, l.check()...); len(errs) > 0 {
		return nil, wrong(errs)
	}
	return l, nil
}

// unknown returns an error for each member of a file that is no setting.
func unknown(layers []layer, settings []setting) (errs []error) {
	for _, layer := range layers {
		for _, key := range slices.Sorted(maps.Keys(layer.values)) {
			section, isSection := layer.values[key].(map[string]any)
			isEmpty := isSection && len(section) == 0
			if !slices.ContainsFunc(settings, func(s setting) bool { return s.key == key || isEmpty && strings.HasPrefix(s.key, key+delimiter) }) {
				errs = append(errs, fmt.Errorf("%s: there is no such setting", layer.place(key)))
			}
		}
	}
	return errs
}

// check returns what is wrong with values of the right kinds.
func (l *Loaded) check() (errs []error) {
	for _, section := range []struct {
		prefix string
		err    error
	}{{"settings.", l.Config.Settings.Validate()}, {"store.", l.Config.Store.Validate()}} {
		if section.err != nil {
			errs = append(errs, l.locate(section.prefix, section.err))
		}
	}
	if every := l.Config.Scrub; every < 0 {
		errs = append(errs, fmt.Errorf("%s: got %v, want 0 or more", l.given["scrub"].place, every))
	}
	for _, s := range l.Config.settings() {
		if g, ok := l.given[s.key]; ok && s.tag.Get("positive") != "" && s.value.Int() <= 0 {
			errs = append(errs, fmt.Errorf("%s: got %v, want more than 0", g.place, s.show()))
		}
	}
	if f := l.Config.Failover; f < raftlog.MinFailover || f > raftlog.MaxFailover {
		errs = append(errs, fmt.Errorf("%s: got %v, want %v to %v", l.given["failover"].place, f, raftlog.MinFailover, raftlog.MaxFailover))
	}
	errs = append(errs, l.checkGroups("metrics_keys", l.Config.MetricsKeys, ActorGroups)...)
	errs = append(errs, l.checkGroups("dump_groups", l.Config.DumpGroups, append([]string{dumps.AllGroups}, ActorGroups...))...)
	errs = append(errs, l.checkMessages()...)
	if l.Config.Dump != "" {
		return errs
	}
	for _, key := range slices.Sorted(maps.Keys(l.given)) {
		if strings.HasPrefix(key, "dump_") || strings.Contains(key, ".dumping.") {
			with := "dump"
			if l.given[key].source == fromFlag {
				with = "--dump"
			}
			errs = append(errs, fmt.Errorf("%s goes with %s", l.given[key].place, with))
		}
	}
	return errs
}

// checkGroups returns an error for each name of a list that is none of those that it may have.
func (l *Loaded) checkGroups(key string, got, want []string) (errs []error) {
	for _, name := range got {
		if !slices.Contains(want, name) {
			errs = append(errs, fmt.Errorf("%s: got %.80q, want one of %s", l.given[key].place, name, strings.Join(want, ", ")))
		}
	}
	return errs
}

// locate says where the setting stands that an error of another package names.
func (l *Loaded) locate(prefix string, err error) error {
	for _, s := range l.Config.settings() {
		if g, ok := l.given[s.key]; ok && strings.HasPrefix(s.key, prefix) && strings.Contains(err.Error(), ": "+s.field+": ") {
			return fmt.Errorf("%s: %w", g.place, err)
		}
	}
	return err
}

// Setting is one as it is shown.
type Setting struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
	// Source is default, file, environment or flag; Place says where in it.
	Source string `json:"source"`
	Place  string `json:"place,omitempty"`
	// Fixed says why it cannot change while the server runs.
	Fixed string `json:"fixed,omitempty"`
}

// Settings returns all settings but those of groups that nobody has given.
func (l *Loaded) Settings() []Setting {
	var all []Setting
	settings := l.Config.settings()
	for _, s := range settings {
		g, ok := l.given[s.key]
		if !ok {
			g.source = fromDefault
		}
		if ok || !strings.HasPrefix(s.key, "groups.") {
			if l.isOpen(s, settings) {
				s.fixed = ""
			}
			all = append(all, Setting{s.key, s.show(), g.source, g.place, s.fixed})
		}
	}
	return all
}

// Change is that of one setting.
type Change struct {
	Key      string
	From, To any
}

// Changes returns what is different in a later configuration, or ErrConfig with all that cannot change while the server
// runs.
func (l *Loaded) Changes(later *Loaded) ([]Change, error) {
	var all []Change
	var errs []error
	after := later.Config.settings()
	for i, s := range l.Config.settings() {
		to := after[i]
		switch {
		case isSame(s.value, to.value):
		case s.fixed != "" && !l.isOpen(s, after):
			where := s.key
			if g, ok := later.given[s.key]; ok {
				where = g.place
			}
			errs = append(errs, fmt.Errorf("%s: got %v, want %v as it is: it cannot change while the server runs, since %s",
				where, plain(to.show()), plain(s.show()), s.fixed))
		default:
			all = append(all, Change{s.key, s.show(), to.show()})
		}
	}
	return all, wrong(errs)
}

// CheckDump returns ErrConfig if the dump is a file that another configuration does not name.
func (l *Loaded) CheckDump(own *Loaded) error {
	got, want := l.Config.Dump, own.Config.Dump
	if got == "" || got == want {
		return nil
	}
	named := fmt.Sprintf("%.200q or none", want)
	if want == "" {
		named = "none"
	}
	return fmt.Errorf("%w: %s: got %.200q, want %s, as the server's own file, environment and flags say: they alone name another file, at SIGHUP",
		ErrConfig, l.given["dump"].place, got, named)
}

// isOpen reports whether a setting that is fixed else can change now, with those of later.
func (l *Loaded) isOpen(s setting, later []setting) bool {
	until, some := s.tag.Lookup("until")
	if !some {
		return false
	}
	for i, other := range l.Config.settings() {
		if other.key == until {
			return other.value.IsZero() || until != s.key && !isSame(other.value, later[i].value)
		}
	}
	return false
}

// isSame reports whether two values of a setting mean the same: an empty list is none.
func isSame(a, b reflect.Value) bool {
	if a.Kind() == reflect.Slice && a.Len() == 0 && b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// wrong returns an ErrConfig of several errors, nil if there are none.
func wrong(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrConfig, errors.Join(errs...))
}

// plain is a value for a sentence.
func plain(v any) any {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%.80q", s)
	}
	if n, ok := v.(*uint16); ok && n != nil {
		return *n
	}
	return v
}
