package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// document is a file with one setting, and with the dump that others need.
func document(t *testing.T, key string, value any) []byte {
	t.Helper()
	root := map[string]any{}
	if strings.HasPrefix(key, "dump_") || strings.Contains(key, ".dumping.") {
		root["dump"] = "x.dump"
	}
	at := root
	names := strings.Split(key, ".")
	for _, name := range names[:len(names)-1] {
		next := map[string]any{}
		at[name], at = next, next
	}
	at[names[len(names)-1]] = value
	content, err := json.Marshal(root)
	check(t, err)
	return content
}

func nothing(string) string { return "" }

func loadOne(t *testing.T, key string, value any) (*Loaded, error) {
	t.Helper()
	return NewSource("", nothing, nil).LoadDocument(document(t, key, value))
}

// bad are values that a setting must refuse: of each kind one of another kind, and what is out of its range.
func (s *setting) bad() (all []any) {
	v := s.value
	if v.Kind() == reflect.Pointer {
		v = reflect.New(v.Type().Elem()).Elem()
	}
	all = []any{nil, map[string]any{"x": 1}}
	switch v.Interface().(type) {
	case time.Duration:
		if s.tag.Get("positive") != "" {
			all = append(all, "0s")
		}
		return append(all, 5, "5", "soon", "-1s", true)
	case zapcore.Level:
		return append(all, "", "loud", "WARN", "fatal", 1)
	case string:
		if s.tag.Get("oneof") != "" {
			all = append(all, "", "xml")
		}
		return append(all, 5, true, []any{"x"})
	case []string:
		if isGroups(s.key) {
			all = append(all, []any{"partitions"}, []any{"partition", ""}, []any{"Partition"})
		}
		return append(all, "x", 5, []any{5})
	case bool:
		return append(all, "true", 1)
	}
	least, most := s.bounds(v)
	all = append(all, "5", 1.5, true, -1, 1e300)
	if _, ok := s.tag.Lookup("least"); ok {
		all = append(all, least-1)
	}
	if most < 1<<52 {
		all = append(all, most+1)
	}
	return all
}

// isGroups says that a setting is a list of groups of actors.
func isGroups(key string) bool { return key == "metrics_keys" || key == "dump_groups" }

// good is a value that a setting takes, and does not have by default.
func (s *setting) good() any {
	v := s.value
	if v.Kind() == reflect.Pointer {
		v = reflect.New(v.Type().Elem()).Elem()
	}
	switch v.Interface().(type) {
	case time.Duration:
		if s.key == "failover" {
			return "4s"
		}
		return "61s"
	case zapcore.Level:
		return "debug"
	case string:
		if words := strings.Fields(s.tag.Get("oneof")); len(words) > 0 {
			return words[len(words)-1]
		}
		return "something"
	case []string:
		if strings.HasSuffix(s.key, "messages") {
			return []any{"Append", "Stop"}
		}
		return []any{"partition", "lane"}
	case bool:
		return true
	}
	const good = 70_001 % (1 << 16) // of an uint16 too
	if most, err := strconv.Atoi(s.tag.Get("most")); err == nil {
		return min(good, most)
	}
	return good
}

// TestBadSettings: whatever a setting is given that it does not take, the error names it, what it got and what it wants. The
// settings are those that there are.
func TestBadSettings(t *testing.T) {
	settings := Default().settings()
	if len(settings) < 90 {
		t.Fatalf("got %d settings", len(settings))
	}
	for _, s := range settings {
		for _, bad := range s.bad() {
			_, err := loadOne(t, s.key, bad)
			_, isSection := bad.(map[string]any)
			switch {
			case !errors.Is(err, ErrConfig):
				t.Errorf("%s = %v: got %v", s.key, bad, err)
			case isSection:
				if want := "the document: " + s.key + ".x: there is no such setting"; !strings.Contains(err.Error(), want) {
					t.Errorf("%s = %v: got %v", s.key, bad, err)
				}
			case !strings.Contains(err.Error(), "the document: "+s.key+": ") || !strings.Contains(err.Error(), "got ") || !strings.Contains(err.Error(), "want "):
				t.Errorf("%s = %v: got %v", s.key, bad, err)
			case isGroups(s.key) && reflect.ValueOf(bad).Kind() == reflect.Slice: // the name is told that is wrong
			case strings.Contains(err.Error(), fmt.Sprint(bad)) == s.isSecret() && bad != "" && s.key != "store.lock_timeout": // it tells nanoseconds
				t.Errorf("%s = %v: got %v", s.key, bad, err)
			}
		}
	}
}

// TestGoodSettings: each setting can be given in a file, in the environment, and, if there is a flag, as one; the later goes
// before the earlier. While a server runs the change is taken, or refused with the reason.
func TestGoodSettings(t *testing.T) {
	before, err := NewSource("", nothing, nil).LoadDocument([]byte(`{"dump": "x.dump"}`))
	check(t, err)
	variables := make(map[string]string)
	for i, s := range Default().settings() {
		if s.key == "dump" {
			continue
		}
		if other := variables[s.variable()]; other != "" {
			t.Fatalf("%s and %s have the same variable", s.key, other)
		}
		variables[s.variable()] = s.key
		l, err := loadOne(t, s.key, s.good())
		if err != nil {
			t.Errorf("%s: %v", s.key, err)
			continue
		}
		got := l.Config.settings()[i]
		if reflect.DeepEqual(got.value.Interface(), before.Config.settings()[i].value.Interface()) {
			t.Errorf("%s: got %v, as before", s.key, got.show())
		}
		words := fmt.Sprint(s.good())
		if list, ok := s.good().([]any); ok {
			words = fmt.Sprint(list[0]) + "," + fmt.Sprint(list[1])
		}
		fromEnv, err := NewSource("", func(name string) string {
			return map[string]string{s.variable(): words, variablePrefix + "DUMP": "x.dump", "PARTITA_SERVICE_HOST": "somebody else's"}[name]
		}, nil).LoadDocument([]byte("{}"))
		check(t, err)
		if !reflect.DeepEqual(fromEnv.Config.settings()[i].value.Interface(), got.value.Interface()) || fromEnv.given[s.key] != (given{fromEnvironment, s.variable()}) {
			t.Errorf("%s: got %v of the environment, %+v", s.key, fromEnv.Config.settings()[i].show(), fromEnv.given[s.key])
		}
		if s.key == "trace_node" {
			s.fixed = "" // there is none yet
		}
		if s.fixed == "" {
			before.given, l.Config.Dump = nil, "x.dump"
		}
		changes, err := before.Changes(l)
		switch {
		case s.fixed != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), s.key) || !strings.Contains(err.Error(), "since "+s.fixed)):
			t.Errorf("%s: got %v", s.key, err)
		case s.fixed == "" && (err != nil || len(changes) == 0 || changes[0].Key != s.key):
			t.Errorf("%s: got %+v, %v", s.key, changes, err)
		}
		for _, shown := range l.Settings() {
			if shown.Key == "token" && shown.Value == s.good() {
				t.Error("the token is shown")
			}
		}
	}
}

// TestSources: flags go before the environment, that before the file, that before what is said of all groups.
func TestSources(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.String("log-level", "warn", "")
	set.StringSlice("dump-groups", nil, "")
	set.Int("dump-rate", 1, "")
	check(t, set.Parse([]string{"--log-level=error", "--dump-groups=", "--dump-rate=7"}))
	file := filepath.Join(t.TempDir(), "c.toml")
	check(t, os.WriteFile(file, []byte(`
dump = "x"
log_level = "debug"
log_rate = 3
listen = "127.0.0.1:1"
[settings]
flush_interval = "2s"
[groups.lane.logging]
level = "info"
[groups.partition.dumping]
bodies = true
[store]
`), 0o600))
	l, err := NewSource(file, func(name string) string {
		return map[string]string{"PARTITA_LOG_RATE": "4", "PARTITA_LOG_LEVEL": "info", "PARTITA_SETTINGS_FLUSH_INTERVAL": "3s"}[name]
	}, set).Load()
	check(t, err)
	c := l.Config
	if c.LogLevel != zapcore.ErrorLevel || c.LogRate != 4 || c.Settings.FlushInterval != 3*time.Second || c.Listen != "127.0.0.1:1" || len(c.DumpGroups) != 0 {
		t.Errorf("got %+v", c)
	}
	if got := *c.Groups["lane"]; got.Logging != (Logging{zapcore.InfoLevel, 4}) {
		t.Errorf("got %+v", got)
	}
	if got := c.Groups["partition"]; got.Logging != (Logging{zapcore.ErrorLevel, 4}) || got.Dumping.Rate != 7 || !got.Dumping.Bodies || c.Groups["lane"].Dumping.Bodies {
		t.Errorf("got %+v", got)
	}
	for _, s := range l.Settings() {
		want, some := map[string]string{
			"log_level": "flag --log-level", "log_rate": "environment PARTITA_LOG_RATE", "listen": "file " + file + ": listen",
			"groups.lane.logging.level": "file " + file + ": groups.lane.logging.level", "connections": "default ",
		}[s.Key]
		if some && s.Source+" "+s.Place != want {
			t.Errorf("%s: got %s %s, want %s", s.Key, s.Source, s.Place, want)
		}
		if strings.HasPrefix(s.Key, "groups.") && s.Source == fromDefault {
			t.Errorf("%s is shown, and nobody has given it", s.Key)
		}
	}
}

// TestPaths: relative paths of a file begin beside it, and so do those of a document in its place; those of flags and of
// the environment begin in the working directory.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "c.json")
	const document = `{"db": "store", "descriptor": "../a.toml", "tls_cert": "/etc/cert", "tls_key": "k/key", "token_file": "token", "dump": "dump", "token": "text"}`
	check(t, os.WriteFile(file, []byte(document), 0o600))
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.String("token-file", "", "")
	check(t, set.Parse([]string{"--token-file=of-the-flag"}))
	source := NewSource(file, func(name string) string { return map[string]string{"PARTITA_DUMP": "of-the-environment"}[name] }, set)
	of := func(l *Loaded, err error) [7]string {
		check(t, err)
		c := l.Config
		return [7]string{c.DB, c.Descriptor, c.TLSCert, c.TLSKey, c.TokenFile, c.Dump, c.Token}
	}
	want := [7]string{
		filepath.Join(dir, "store"), filepath.Join(filepath.Dir(dir), "a.toml"), "/etc/cert", filepath.Join(dir, "k", "key"),
		"of-the-flag", "of-the-environment", "text",
	}
	if got := of(source.Load()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := of(source.LoadDocument([]byte(document))); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := of(NewSource("", nothing, nil).LoadDocument([]byte(document))); got[0] != "store" {
		t.Errorf("got %q", got)
	}
}

// TestFormats: TOML, YAML and JSON say the same, and so does the document that is made of each.
func TestFormats(t *testing.T) {
	var first *Loaded
	dir := t.TempDir()
	for name, content := range map[string]string{
		"c.toml": "connections = 9\ndump_groups = []\ndump = \"x\"\n[groups.command-processor.telemetry]\nkeys = true\n[settings]\nstop_limit = \"1m\"\n",
		"c.yaml": "connections: 9\ndump_groups: []\ndump: x\ngroups: {command-processor: {telemetry: {keys: true}}}\nsettings:\n  stop_limit: 1m\n",
		"c.yml":  "connections: 9\ndump_groups: []\ndump: x\ngroups: {command-processor: {telemetry: {keys: true}}}\nsettings:\n  stop_limit: 60s\n",
		"c.json": `{"connections": 9, "dump_groups": [], "dump": "x", "groups": {"command-processor": {"telemetry": {"keys": true}}}, "settings": {"stop_limit": "1m"}}`,
	} {
		file := filepath.Join(dir, name)
		check(t, os.WriteFile(file, []byte(content), 0o600))
		source := NewSource(file, nothing, nil)
		l, err := source.Load()
		check(t, err)
		if first == nil {
			first = l
		}
		changes, err := first.Changes(l)
		if c := l.Config; err != nil || len(changes) > 0 || c.Connections != 9 || c.Settings.StopLimit != time.Minute || len(c.DumpGroups) != 0 ||
			!c.Groups["command-processor"].Telemetry.Keys {
			t.Errorf("%s: got %+v, %+v, %v", name, c, changes, err)
		}
		document, err := Document(file)
		check(t, err)
		again, err := source.LoadDocument(document)
		check(t, err)
		if changes, err := l.Changes(again); err != nil || len(changes) > 0 {
			t.Errorf("%s: got %+v, %v", document, changes, err)
		}
	}
}

// TestUnreadable: a file that cannot be read, or understood, is named; all that is wrong is told.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a.toml": "listen = ", "b.yaml": "listen: [", "c.json": "{} {}", "d.ini": "", "e.json": "[]"} {
		file := filepath.Join(dir, name)
		check(t, os.WriteFile(file, []byte(content), 0o600))
		if _, err := NewSource(file, nothing, nil).Load(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := NewSource(filepath.Join(dir, "none.toml"), nothing, nil).Load(); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, ErrConfig) {
		t.Errorf("got %v", err)
	}
	_, err := NewSource("", nothing, nil).LoadDocument([]byte(`{"listn": "x", "groups": {"nobody": {"logging": {"level": "info"}}, "http": {"dumping": {"rate": 5}}},
		"setings": {}, "settings": 5, "connections": 3, "dump_rate": 5}`))
	for _, want := range []string{
		"listn: there is no such", "groups.nobody.logging.level: there is no such", "groups.http.dumping.rate: there is no such", "setings: there is no such",
		"settings: there is no such", "connections: got 3, want 4 to 1048576", "dump_rate goes with dump",
	} {
		if err == nil || !strings.Contains(err.Error(), "the document: "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLists: names have no white space around them; an empty list is none, but for the groups that are dumped, which are all
// unless somebody says otherwise; wrong groups are told with those that there are.
func TestLists(t *testing.T) {
	of := func(document string, environment map[string]string) *Loaded {
		t.Helper()
		l, err := NewSource("", func(name string) string { return environment[name] }, nil).LoadDocument([]byte(document))
		check(t, err)
		return l
	}
	const keys = variablePrefix + "METRICS_KEYS"
	spaced := of(`{}`, map[string]string{keys: " partition, lane "})
	if got := spaced.Config.MetricsKeys; !reflect.DeepEqual(got, []string{"partition", "lane"}) {
		t.Errorf("got %q", got)
	}
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.StringSlice("metrics-keys", nil, "")
	check(t, set.Parse([]string{"--metrics-keys=partition, lane"}))
	if l, err := NewSource("", nothing, set).Load(); err != nil || !reflect.DeepEqual(l.Config.MetricsKeys, []string{"partition", "lane"}) {
		t.Errorf("got %+v, %v", l, err)
	}
	empty := of(`{"dump": "x", "allow_origin": [], "metrics_keys": [], "dump_messages": [], "groups": {"lane": {"dumping": {"messages": []}}}}`, nil)
	for name, c := range map[string][2]*Loaded{"to none": {empty, of(`{"dump": "x"}`, nil)}, "from none": {of(`{"dump": "x"}`, nil), empty}} {
		if changes, err := c[0].Changes(c[1]); err != nil || len(changes) > 0 {
			t.Errorf("%s: got %+v, %v", name, changes, err)
		}
	}
	if changes, err := of(`{"dump": "x"}`, nil).Changes(of(`{"dump": "x", "dump_groups": []}`, nil)); err != nil || len(changes) != 1 {
		t.Errorf("got %+v, %v", changes, err)
	}
	of(`{"dump": "x", "dump_groups": ["*"]}`, nil)
	_, err := NewSource("", func(name string) string { return map[string]string{keys: "partition,*"}[name] }, nil).LoadDocument([]byte(`{}`))
	if want := keys + `: got "*", want one of partition, flusher, `; !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestFixedUntil: a node for traces can be given to a server that has none, and the memory of a dump changes with its file.
func TestFixedUntil(t *testing.T) {
	of := func(document string) *Loaded {
		l, err := NewSource("", nothing, nil).LoadDocument([]byte(document))
		check(t, err)
		return l
	}
	for _, tt := range []struct{ before, after, refused string }{
		{`{}`, `{"trace_node": 7}`, ""},
		{`{"trace_node": 7}`, `{"trace_node": 8}`, "trace_node: got 8, want 7 as it is"},
		{`{"trace_node": 7}`, `{}`, "trace_node: got <nil>, want 7 as it is"},
		{`{}`, `{"dump": "x", "dump_memory": 3}`, ""},
		{`{"dump": "x", "dump_memory": 3}`, `{}`, ""},
		{`{"dump": "x"}`, `{"dump": "y", "dump_memory": 3}`, ""},
		{`{"dump": "x"}`, `{"dump": "x", "dump_memory": 3}`, "dump_memory: got 3, want 8 as it is"},
	} {
		_, err := of(tt.before).Changes(of(tt.after))
		if tt.refused == "" && err != nil || tt.refused != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.refused)) {
			t.Errorf("%s to %s: got %v, want %q", tt.before, tt.after, err, tt.refused)
		}
	}
	for document, fixed := range map[string]bool{`{}`: false, `{"trace_node": 7}`: true} {
		for _, s := range of(document).Settings() {
			if s.Key == "trace_node" && (s.Fixed != "") != fixed {
				t.Errorf("%s: got fixed %q", document, s.Fixed)
			}
		}
	}
}

// TestFilesArePaths: each setting that names a file finds it beside the file of settings. A text that is none is listed here.
func TestFilesArePaths(t *testing.T) {
	texts := []string{"listen", "token", "node", "peer_listen", "log_format"}
	for _, s := range Default().settings() {
		if s.value.Kind() != reflect.String || s.tag.Get("oneof") != "" {
			continue
		}
		if isPath, isText := s.tag.Get("path") != "", slices.Contains(texts, s.key); isPath == isText {
			t.Errorf("%s: got path %t, want %t: does it name a file?", s.key, isPath, !isText)
		}
	}
}

// TestInheritedWrongOnce: what is wrong is told where it was given, not again at what has its default from there.
func TestInheritedWrongOnce(t *testing.T) {
	_, err := NewSource("", nothing, nil).LoadDocument([]byte(`{"restart_delay": "0s"}`))
	if want := ErrConfig.Error() + ": the document: restart_delay: got 0s, want more than 0"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestWrittenDump: the dump that a written configuration proposes is beside the store, wherever the configuration is.
func TestWrittenDump(t *testing.T) {
	above, err := filepath.Abs("..")
	check(t, err)
	for _, tt := range []struct{ config, db, want string }{
		{"start/partita.toml", "start/store", "messages.dump"},
		{"partita.toml", "store", "messages.dump"},
		{"partita.toml", "/var/lib/shops", "/var/lib/messages.dump"},
		{"partita.toml", ".", filepath.Join(above, "messages.dump")},
	} {
		text, err := WriteConfig(Paths{Config: tt.config, DB: tt.db, Descriptor: "application.toml"})
		check(t, err)
		if want := "\n# dump = " + strconv.Quote(tt.want) + "\n"; !strings.Contains(string(text), want) {
			t.Errorf("%+v: got %s, want %s", tt, text, want)
		}
	}
}
