package config

import (
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/partita-go/partita/dumps"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/replog/raftlog"
)

// Config has all settings. Tags say: fixed, why one cannot change while the server runs; until, that it can all the same
// while the setting of this key has no value, or gets another one; least and most, which numbers it takes; positive, that
// a duration is no time or less is refused; oneof, which words; secret, that nobody is shown it; path, that it names a
// file, which a relative path in a file of settings finds beside that; from, which setting it has its default from; without,
// which fields of a struct are no settings.
type Config struct {
	DB          string   `fixed:"the store is open" path:"true"`
	Descriptor  string   `fixed:"the store is open" path:"true"`
	Listen      string   `fixed:"the server listens already"`
	TLSCert     string   `fixed:"the server listens already; SIGHUP reads that file again" path:"true"`
	TLSKey      string   `fixed:"the server listens already; SIGHUP reads that file again" path:"true"`
	TokenFile   string   `fixed:"the server listens already; SIGHUP reads that file again" path:"true"`
	Token       string   `fixed:"the server listens already; of a token_file SIGHUP reads another one" secret:"true"`
	Connections int      `fixed:"the server listens already" least:"4" most:"1048576"`
	AllowOrigin []string `fixed:"the server listens already"`
	TraceNode   *uint16  `fixed:"ids of traces were given with it" until:"trace_node"`
	MetricsKeys []string

	Node       string        `fixed:"the node runs already"`
	Peers      []string      `fixed:"the node runs already"`
	PeerListen string        `fixed:"the node runs already"`
	PeerCert   string        `fixed:"the node runs already" path:"true"`
	PeerKey    string        `fixed:"the node runs already" path:"true"`
	PeerCA     string        `fixed:"the node runs already" path:"true"`
	Failover   time.Duration `fixed:"the node runs already"`
	Shards     int           `fixed:"the store was made with it" least:"1" most:"64"`

	LogLevel  zapcore.Level
	LogFormat string `fixed:"the log has begun in it" oneof:"console json"`
	LogRate   int    `least:"1" most:"1000000000"`

	Dump         string `path:"true"`
	DumpGroups   []string
	DumpMessages []string
	DumpRate     int `least:"1" most:"1000000000"`
	DumpLongest  int `least:"16" most:"262144"`
	DumpBodies   bool
	DumpMemory   int `fixed:"the dump has it; it changes with the name of the file" until:"dump" least:"1" most:"1048576"`

	Scrub      time.Duration
	ScrubShare int `least:"1" most:"100"`

	AlarmAfter   time.Duration `fixed:"actors were started with it" positive:"true"`
	RestartDelay time.Duration `fixed:"actors were started with it" positive:"true"`

	Settings    partition.Settings
	Application Application
	Store       bolt.Options `fixed:"the store is open" without:"ReadOnly Progress Create AcceptNewer Log"`

	// Groups are those of actors, and of log lines, by name: see [ActorGroups].
	Groups map[string]*Group
}

// Application has what partition.Application has beside its Settings.
type Application struct {
	CacheNumbers     int `fixed:"the application is deployed" least:"1" most:"2147483647"`
	RequestLane      int `least:"1" most:"2147483647"`
	RequestLaneBytes int `least:"1" most:"9223372036854775807"`
	Actualizations   int `fixed:"the application is deployed" least:"1" most:"2147483647"`
}

// Group has what is said of one group.
type Group struct {
	Dumping   Dumping
	Telemetry Telemetry
	Logging   Logging
	Restart   Restart `fixed:"its actors were started with it"`
}

// Restart has what partition.RestartPolicy has.
type Restart struct {
	Mode         string        `oneof:"on-failure always never"`
	MinDelay     time.Duration `positive:"true"`
	MaxDelay     time.Duration `from:"restart_delay" positive:"true"`
	MostFailures int           `least:"0" most:"1000000000"`
}

// Dumping says how messages of a group are dumped, if they are.
type Dumping struct {
	Messages []string `from:"dump_messages"`
	Rate     int      `from:"dump_rate" least:"1" most:"1000000000"`
	Longest  int      `from:"dump_longest" least:"16" most:"262144"`
	Bodies   bool     `from:"dump_bodies"`
}

// Telemetry says which metrics there are of a group.
type Telemetry struct {
	// Keys gives each actor series of its own.
	Keys bool
}

// Logging says which log lines of a group are written.
type Logging struct {
	Level zapcore.Level `from:"log_level"`
	Rate  int           `from:"log_rate" least:"1" most:"1000000000"`
}

// ActorGroups have messages, and so dumps and metrics; LogGroups have log lines; actors of RestartGroups are restarted when
// they panic, leaves with them.
var (
	RestartGroups = []string{"partition", "command-processor", "lane"}

	ActorGroups = []string{"partition", "flusher", "actualizer", "reader", "appender", "command-processor", "lane", "deliverer"}
	LogGroups   = []string{"partition", "command-processor", "lane", "supervisor", "store", "http", "dumps", "serve"}
)

// DefaultListen is where the server listens unless it is told another address.
const DefaultListen = "127.0.0.1:7420"

// Default returns the configuration of whoever says nothing.
func Default() *Config {
	app := partition.Application{}.WithDefaults()
	c := &Config{
		Listen: DefaultListen, Connections: 1024, Failover: raftlog.DefaultFailover, Shards: 1,
		LogLevel: zapcore.WarnLevel, LogFormat: "console", LogRate: 1000,
		DumpGroups: []string{dumps.AllGroups}, DumpRate: 100_000, DumpLongest: 4096, DumpMemory: 8,
		ScrubShare: 20,
		AlarmAfter: 5 * time.Second, RestartDelay: time.Second,
		Application: Application{app.CacheNumbers, app.RequestLane, app.RequestLaneBytes, app.Actualizations},
		Groups:      make(map[string]*Group),
	}
	for _, names := range [][]string{ActorGroups, LogGroups} {
		for _, name := range names {
			c.Groups[name] = &Group{Restart: Restart{Mode: partition.RestartOnFailure.String(), MinDelay: time.Millisecond}}
		}
	}
	return c
}

// complete fills in the defaults that depend on other settings.
func (c *Config) complete() {
	c.Settings = c.Settings.WithDefaults()
	c.Store = c.Store.WithDefaults()
}
