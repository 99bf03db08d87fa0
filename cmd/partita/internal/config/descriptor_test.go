package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

func descriptorFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	check(t, os.WriteFile(file, []byte(content), 0o600))
	return file
}

// TestDescriptorFormats: TOML, YAML and JSON say the same, with numbers as numbers or as texts.
func TestDescriptorFormats(t *testing.T) {
	want := messages.Descriptor{Application: "shops", Partitions: 2, Kinds: []messages.Kind{{ID: 1, Name: "shop", Sequences: []messages.Sequence{{
		ID: 16, Name: "invoice", Initial: 1, Largest: 999, Formats: []string{"{yyyy}/{n}"},
		Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year, FirstMonth: time.July}, Zone: "Europe/Zurich", Keep: 2},
	}}}}}
	for name, content := range map[string]string{
		"a.toml": "application = \"shops\"\npartitions = 2\n[[kinds]]\nkind = 1\nname = \"shop\"\n[[kinds.sequences]]\nsequence = 16\nname = \"invoice\"\n" +
			"largest = 999\nformats = [\"{yyyy}/{n}\"]\nrestart = {every = \"year\", first_month = 7, zone = \"Europe/Zurich\", keep = 2}\n",
		"a.yaml": "application: shops\npartitions: 2\nkinds:\n- kind: 1\n  name: shop\n  sequences:\n  - sequence: 16\n    name: invoice\n    largest: 999\n" +
			"    formats: ['{yyyy}/{n}']\n    restart: {every: year, first_month: 7, zone: Europe/Zurich, keep: 2}\n",
		"a.json": `{"application": "shops", "partitions": 2, "kinds": [{"kind": 1, "name": "shop", "sequences": [{"sequence": 16, "name": "invoice", "initial": 1,
			"largest": "999", "formats": ["{yyyy}/{n}"], "restart": {"every": "year", "first_month": 7, "zone": "Europe/Zurich", "keep": 2}}]}]}`,
	} {
		got, err := ReadDescriptor(descriptorFile(t, name, content))
		if err != nil || !reflect.DeepEqual(got, want.Normalized()) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestNamedLimits: the largest number may be one of those that have a name.
func TestNamedLimits(t *testing.T) {
	const sequence = "application = \"a\"\npartitions = 1\n[[kinds]]\nkind = 1\nname = \"x\"\n[[kinds.sequences]]\nsequence = 17\nname = \"y\"\n"
	for text, want := range map[string]messages.Number{
		"safe": messages.LargestSafe, "1 digit": 9, "7 digits": 9_999_999, "18 digits": 999_999_999_999_999_999, "19 digits": 0, "0 digits": 0, "07 digits": 0,
	} {
		d, err := ReadDescriptor(descriptorFile(t, "a.toml", sequence+"largest = \""+text+"\"\n"))
		if (err == nil) != (want != 0) || err == nil && d.Kinds[0].Sequences[0].Largest != want {
			t.Errorf("%s: got %+v, %v, want %d", text, d, err, want)
		}
		if _, err := ReadDescriptor(descriptorFile(t, "a.toml", sequence+"initial = \""+text+"\"\n")); !errors.Is(err, ErrConfig) {
			t.Errorf("initial %s: got %v", text, err)
		}
	}
}

// TestBadDescriptors: what is wrong with a file is told, with its place as far as that is known.
func TestBadDescriptors(t *testing.T) {
	const kind = "application = \"a\"\npartitions = 1\n[[kinds]]\nname = \"x\"\n"
	const sequence = kind + "kind = 1\n[[kinds.sequences]]\nsequence = 17\nname = \"y\"\n"
	for content, want := range map[string]string{
		"application = \"a\"\npartitions = 4294967297\n":             "partitions: got a number 4294967297, want a whole number, 0 to 4294967295",
		"application = \"a\"\npartitions = -1\n":                     "partitions: got a number -1, want a whole number",
		"application = 5\n":                                          "application: got a number, want a text",
		"application = \"a\"\npartitions = 1\nkinds = 5":             "kinds: got a number, want a list",
		"application = \"a\"\n\npartitions = 1 1\n":                  "a.toml: line 3: ",
		kind + "kind = 70000\n":                                      "kinds.kind: got a number 70000, want a whole number, 0 to 65535",
		kind + "kind = 1\nnam = \"x\"\n":                             `"nam": there is no such member`,
		kind + "kind = 0\n":                                          "bad application descriptor: kind 0: ids must be unique and not 0",
		sequence + "initial = -1\n":                                  "initial of sequence 17: got -1, want a whole number",
		sequence + "largest = \"many\"\n":                            "largest of sequence 17: got many, want a whole number",
		sequence + "restart = 1\n":                                   "kinds.sequences.restart: got a number, want a table",
		sequence + "restart = {every = \"year\", keep = true}":       "keep: got a bool, want a whole number",
		sequence + "restart = {every = \"fortnight\"}\n":             `unit: got "fortnight", want one of`,
		sequence + "restart = {every = \"day\", zone = \"Nowhere\"}": `not a time zone: got "Nowhere"`,
	} {
		if _, err := ReadDescriptor(descriptorFile(t, "a.toml", content)); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", content, err, want)
		}
	}
	if _, err := ReadDescriptor("a.ini"); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), ".toml") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadDescriptor("none.toml"); !errors.Is(err, ErrConfig) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestWriteDescriptor: what is written is read as the same, whatever it has.
func TestWriteDescriptor(t *testing.T) {
	all := messages.Descriptor{Application: "all \"quoted\" \\ <é>", Partitions: 65536, TrustLevel: 2, Kinds: []messages.Kind{
		{ID: 2, Name: "none"},
		{ID: 1, Name: "some", Sequences: []messages.Sequence{
			{ID: 16, Name: "endless", Initial: 1, Largest: 1<<64 - 1}, {ID: 17, Name: "late", Initial: 1<<63 + 5},
			{ID: 18, Name: "daily", Initial: 7, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Keep: 3, Ahead: -1}, Formats: []string{"{yyyy}{mm}{dd}-{n}", "{{{n}/{dd}.{mm}.{yyyy}}}"}},
			{ID: 19, Name: "fiscal", Initial: 1, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Year, FirstMonth: time.July}, Zone: "Asia/Tokyo", Ahead: 4}},
		}},
	}}
	for _, d := range []messages.Descriptor{all, Example("shops")} {
		content, err := WriteDescriptor(&d, "partita.toml")
		check(t, err)
		got, err := ReadDescriptor(descriptorFile(t, "a.toml", string(content)))
		if err != nil || !reflect.DeepEqual(got, d.Normalized()) {
			t.Errorf("got %+v, %v of\n%s", got, err, content)
		}
	}
	all.Kinds[0].Name = "\xff"
	if _, err := WriteDescriptor(&all, "partita.toml"); !errors.Is(err, ErrConfig) {
		t.Errorf("got %v", err)
	}
}

var comment = regexp.MustCompile(`(?m)^# ([a-z_]+ = )`)

// TestWriteConfig: the file is a configuration, and stays one, of the same values, without the comment signs before its settings.
func TestWriteConfig(t *testing.T) {
	content, err := WriteConfig(Paths{Config: "a/partita.toml", DB: `a/"store"`, Descriptor: "a/application.toml"})
	check(t, err)
	for _, text := range []string{string(content), comment.ReplaceAllString(string(content), "$1")} {
		file := descriptorFile(t, "partita.toml", text)
		l, err := NewSource(file, nothing, nil).Load()
		check(t, err)
		want := Default()
		want.complete()
		want.DB, want.Descriptor = filepath.Join(filepath.Dir(file), `"store"`), filepath.Join(filepath.Dir(file), "application.toml")
		l.Config.Store.Progress, want.Store.Progress = nil, nil
		if !reflect.DeepEqual(l.Config.Settings, want.Settings) || !reflect.DeepEqual(l.Config.Store, want.Store) || l.Config.DB != want.DB ||
			l.Config.Descriptor != want.Descriptor || l.Config.Connections != want.Connections || l.Config.LogLevel != want.LogLevel {
			t.Errorf("got %+v of\n%s", l.Config, text)
		}
	}
	if found := len(comment.FindAllString(string(content), -1)); found != 14 {
		t.Errorf("got %d settings behind comment signs", found)
	}
}

// TestWrittenPaths: what is in the directory of the configuration goes with it, what is elsewhere stays there.
func TestWrittenPaths(t *testing.T) {
	here, err := os.Getwd()
	check(t, err)
	for path, want := range map[string]string{
		"a/store": "store", "a/b/store": "b/store", "a": ".", "store": filepath.Join(here, "store"), "b/store": filepath.Join(here, "b/store"),
		"../store": filepath.Join(filepath.Dir(here), "store"), "/var/lib/shops": "/var/lib/shops",
	} {
		content, err := WriteConfig(Paths{Config: "a/partita.toml", DB: path, Descriptor: "a/application.toml"})
		check(t, err)
		if !strings.Contains(string(content), fmt.Sprintf("\ndb = %q\ndescriptor = \"application.toml\"\n", want)) {
			t.Errorf("%s: got %s, want %s", path, content, want)
		}
	}
}
