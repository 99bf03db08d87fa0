package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.uber.org/zap/zapcore"
)

// setting is one field of a [Config].
type setting struct {
	// key is its place in a file: the names of sections and its own, with dots between.
	key string
	// field is its name in Go, as errors of other packages have it.
	field       string
	tag         reflect.StructTag
	fixed, from string
	value       reflect.Value
}

// settings returns all of a configuration, those that others have their defaults from first.
func (c *Config) settings() []setting { return walk(reflect.ValueOf(c).Elem(), "", "") }

// walk returns the settings of a struct, or of a map of them.
func walk(v reflect.Value, prefix, fixed string) (all []setting) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key := prefix + keyOf(field.Name)
		s := setting{key, field.Name, field.Tag, field.Tag.Get("fixed"), field.Tag.Get("from"), v.Field(i)}
		if s.fixed == "" {
			s.fixed = fixed
		}
		switch {
		case s.value.Kind() == reflect.Struct:
			without := strings.Fields(field.Tag.Get("without"))
			all = append(all, slices.DeleteFunc(walk(s.value, key+".", s.fixed), func(s setting) bool { return slices.Contains(without, s.field) })...)
		case s.value.Kind() == reflect.Map:
			groups, _ := reflect.TypeAssert[map[string]*Group](s.value)
			for _, name := range slices.Sorted(maps.Keys(groups)) {
				all = append(all, walkGroup(groups[name], key, name)...)
			}
		default:
			all = append(all, s)
		}
	}
	return all
}

// walkGroup returns the settings of a group: what has no messages has log lines only, and the other way round; what is
// not restarted by itself has no policy.
func walkGroup(g *Group, prefix, name string) []setting {
	prefix += "." + name + "."
	return slices.DeleteFunc(walk(reflect.ValueOf(g).Elem(), prefix, ""), func(s setting) bool {
		switch {
		case strings.HasPrefix(s.key, prefix+"logging."):
			return !slices.Contains(LogGroups, name)
		case strings.HasPrefix(s.key, prefix+"restart."):
			return !slices.Contains(RestartGroups, name)
		}
		return !slices.Contains(ActorGroups, name)
	})
}

// keyOf returns the name of a field as a file has it: LockTimeout is lock_timeout, TLSCert is tls_cert.
func keyOf(field string) string {
	var b strings.Builder
	letters := []rune(field)
	for i, r := range letters {
		if i > 0 && unicode.IsUpper(r) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// variable is the setting's name in the environment.
func (s *setting) variable() string {
	return variablePrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.key))
}

// flag is the setting's name as a flag, if there is one.
func (s *setting) flag() string { return strings.ReplaceAll(s.key, "_", "-") }

func (s *setting) isSecret() bool { return s.tag.Get("secret") != "" }

// show returns the value as JSON has it.
func (s *setting) show() any {
	if s.isSecret() && !s.value.IsZero() {
		return "<hidden>"
	}
	switch v := s.value.Interface().(type) {
	case time.Duration:
		return v.String()
	case zapcore.Level:
		return v.String()
	}
	if s.value.CanInt() && s.value.Int() > 1<<53-1 {
		return strconv.FormatInt(s.value.Int(), 10)
	}
	return s.value.Interface()
}

// locate lets a relative path begin in a directory.
func (s *setting) locate(dir string) {
	if path := s.value.String(); s.tag.Get("path") != "" && path != "" && !filepath.IsAbs(path) {
		s.value.SetString(filepath.Join(dir, path))
	}
}

// text is a value that the environment or a flag has: whatever it means.
type text string

// set changes the value to one of a file, or to a text. The error says what it got and what it wants.
func (s *setting) set(raw any) error {
	want, err := s.parse(raw)
	if err == nil {
		return nil
	}
	got := fmt.Sprintf("%.80q", raw)
	n, notInt := parseInt(raw)
	switch {
	case s.isSecret():
		got = "something else"
	case notInt == nil:
		got = strconv.FormatInt(n, 10)
	case reflect.ValueOf(raw).Kind() != reflect.String:
		got = fmt.Sprintf("%.80s", fmt.Sprint(raw))
	}
	return fmt.Errorf("got %s, want %s", got, want)
}

// errValue says that a value is none of a setting.
var errValue = errors.New("no value of it")

// parse sets the value, or returns what is wanted.
func (s *setting) parse(raw any) (want string, err error) {
	v := s.value
	if v.Kind() == reflect.Pointer {
		v = reflect.New(v.Type().Elem()).Elem()
		defer func() {
			if err == nil {
				s.value.Set(v.Addr())
			}
		}()
	}
	switch target := v.Addr().Interface().(type) {
	case *time.Duration:
		*target, err = parseDuration(raw)
		return "a duration like 500ms or 2m", err
	case *zapcore.Level:
		*target, err = parseLevel(raw)
		return "debug, info, warn or error", err
	case *string:
		*target, err = s.parseWord(raw)
		return cmp.Or(strings.Join(strings.Fields(s.tag.Get("oneof")), " or "), "a text"), err
	case *[]string:
		*target, err = parseList(raw)
		return "a list of names", err
	case *bool:
		*target, err = parseBool(raw)
		return "true or false", err
	}
	return s.parseNumber(v, raw)
}

// parseNumber sets a number of any kind, or returns what is wanted.
func (s *setting) parseNumber(v reflect.Value, raw any) (want string, err error) {
	least, most := s.bounds(v)
	n, err := parseInt(raw)
	if err == nil && (n < least || n > most) {
		err = errValue
	}
	_, bounded := s.tag.Lookup("least")
	switch {
	case err != nil && !bounded && v.CanInt():
		return "a whole number", err
	case err != nil:
		return fmt.Sprintf("%d to %d", least, most), err
	case v.CanInt():
		v.SetInt(n)
	default:
		v.SetUint(uint64(n))
	}
	return "", nil
}

// bounds returns which numbers are taken. Those without tags are looked at by whoever owns them, but must fit.
func (s *setting) bounds(v reflect.Value) (least, most int64) {
	bits := v.Type().Bits()
	least, most = math.MinInt64>>(64-bits), math.MaxInt64>>(64-bits)
	if v.CanUint() {
		least, most = 0, 1<<bits-1
	}
	if tag, ok := s.tag.Lookup("least"); ok {
		least, _ = strconv.ParseInt(tag, 10, 64)
	}
	if tag, ok := s.tag.Lookup("most"); ok {
		n, _ := strconv.ParseInt(tag, 10, 64)
		most = min(most, n)
	}
	return least, most
}

func parseDuration(raw any) (time.Duration, error) {
	if t, ok := raw.(text); ok {
		raw = string(t)
	}
	s, ok := raw.(string)
	if !ok {
		return 0, errValue
	}
	return time.ParseDuration(s)
}

// levels are those that a program may ask for.
var levels = []zapcore.Level{zapcore.DebugLevel, zapcore.InfoLevel, zapcore.WarnLevel, zapcore.ErrorLevel}

func parseLevel(raw any) (zapcore.Level, error) {
	for _, l := range levels {
		if raw == l.String() || raw == text(l.String()) {
			return l, nil
		}
	}
	return 0, errValue
}

func (s *setting) parseWord(raw any) (string, error) {
	if t, ok := raw.(text); ok {
		raw = string(t)
	}
	word, ok := raw.(string)
	if oneof, some := s.tag.Lookup("oneof"); !ok || some && !slices.Contains(strings.Fields(oneof), word) {
		return "", errValue
	}
	return word, nil
}

// parseList reads names, without the white space around each.
func parseList(raw any) (all []string, err error) {
	switch raw := raw.(type) {
	case []string:
		all = slices.Clone(raw)
	case text:
		all = strings.Split(string(raw), ",")
	case []any:
		all = make([]string, len(raw))
		for i, r := range raw {
			name, ok := r.(string)
			if !ok {
				return nil, errValue
			}
			all[i] = name
		}
	default:
		return nil, errValue
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all, nil
}

func parseBool(raw any) (bool, error) {
	switch raw := raw.(type) {
	case bool:
		return raw, nil
	case text:
		if raw == "true" || raw == "false" {
			return raw == "true", nil
		}
	}
	return false, errValue
}

// parseInt reads a number of any of the kinds of files: JSON has floating point ones only.
func parseInt(raw any) (int64, error) {
	switch raw := raw.(type) {
	case int:
		return int64(raw), nil
	case int64:
		return raw, nil
	case float64:
		if n := int64(raw); float64(n) == raw && math.Abs(raw) <= 1<<53 {
			return n, nil
		}
	case text:
		return strconv.ParseInt(string(raw), 10, 64)
	}
	return 0, errValue
}
