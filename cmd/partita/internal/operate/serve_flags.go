package operate

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/partita-go/partita/cmd/partita/internal/config"
)

// serveFlags defines those of serve. Package config knows them by their names, and reads them, with the file and the
// environment.
func serveFlags(set *pflag.FlagSet) (file *string) {
	d := config.Default()
	set.String("db", "", "the store's directory, `DIR`")
	set.String("descriptor", "", "`FILE` of the application, TOML, YAML or JSON: its kinds and sequences; default: as the store has it")
	file = set.String("config", "", "read settings from `FILE`, which is TOML, YAML or JSON; the environment and flags go before it")
	set.String("listen", d.Listen, "the address to listen on, `ADDR`")
	set.String("tls-cert", "", "`FILE` of the certificate, as PEM")
	set.String("tls-key", "", "`FILE` of the certificate's key, as PEM")
	set.String("token-file", "", "`FILE` of the bearer token that requests must bring; or it is in the environment, as "+tokenVariable)
	set.Int("connections", d.Connections,
		"at most `N` connections at the same time; at most a quarter of them, and 256, are streams, and a half, and 512, wait for an event")
	set.String("trace-node", "", "give requests trace ids, as node `N`, 0 to 65535, which no other server has")
	set.String("node", "", "this server is node `NAME` of several, which --peers names; the store is in shard-0 below --db then")
	set.StringSlice("peers", nil, "where all nodes listen for each other, as n1=10.0.0.1:7421,n2=…, `NODES`: ports of their own")
	set.String("peer-listen", "", "listen for other nodes at `ADDR` (default what --peers says)")
	set.String("peer-cert", "", "`FILE` of the certificate that other nodes are shown, as PEM; not needed where all are on loopback addresses")
	set.String("peer-key", "", "`FILE` of its key, as PEM")
	set.String("peer-ca", "", "`FILE` of the authority that has signed the certificates of all nodes, as PEM")
	set.String("failover", d.Failover.String(), "another node wants to lead when it has heard nothing for so long, `TIME`; the same on all nodes")
	set.Int("shards", d.Shards, "so many shards, `N`, each with an owner of its own: settled when the store is made; the same on all nodes")
	set.StringSlice("allow-origin", nil, "`ORIGIN` of web pages that may ask from a browser, as https://shop.example; can be given again")
	set.StringSlice("metrics-keys", nil,
		"give each actor of these `GROUPS`, as partition,lane, series of its own at /metrics (default none: there may be many)")
	set.String("log-level", d.LogLevel.String(), "write log lines from `LEVEL` on: debug, info, warn or error")
	set.String("log-format", d.LogFormat, "write log lines in `FORMAT`: console or json")
	set.String("scrub", d.Scrub.String(), "check a copy of the store so long, `TIME`, after the last check, as 24h; 0: never")
	set.Int("scrub-share", d.ScrubShare, "a check works `N` percent of the time")
	set.String("dump", "", "write messages of actors to `FILE`")
	set.StringSlice("dump-groups", d.DumpGroups, "dump messages of actors of these `GROUPS`, as partition,appender; * is all")
	set.StringSlice("dump-messages", nil, "dump messages of these types, as Append,Appended, `NAMES` (default all)")
	set.Int("dump-rate", d.DumpRate, "dump at most `N` messages of a group in a second")
	set.Int("dump-longest", d.DumpLongest, "cut messages that are longer than `BYTES`")
	set.Bool("dump-bodies", false, "show bodies of events and data of records")
	set.Int("dump-memory", d.DumpMemory, "keep at most so many `MIB` of messages that are not written yet")
	return file
}

// listen tells of each SIGHUP, which does not end the program any more, until stop is called.
func listen() (hangups <-chan os.Signal, stop func()) {
	all := make(chan os.Signal, 1)
	// Ignored first: it must not reach whoever takes it for an interrupt, nor end the program in between.
	signal.Ignore(syscall.SIGHUP)
	signal.Notify(all, syscall.SIGHUP)
	return all, func() { signal.Stop(all) }
}
