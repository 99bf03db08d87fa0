package cli

import (
	"maps"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// takesVariables marks a command whose flags have variables, with what their names begin with.
const takesVariables = "takes variables"

// The flags that may have variables: they say which store is meant, or which server and with which token.
const (
	flagDB        = "db"
	flagURL       = "url"
	flagTokenFile = "token-file"
)

var variableFlags = []string{flagDB, flagURL, flagTokenFile}

// TakeVariables lets --db, --url and --token-file of a command, and of those below it, have their values from variables of
// the environment if they are not given: PREFIX_DB and so on. Whoever gives a store is not given a server besides, and
// no token. A command with --config is left out: it looks for its settings itself.
func TakeVariables(c *cobra.Command, prefix string) {
	for _, below := range c.Commands() {
		TakeVariables(below, prefix)
	}
	if c.Flags().Lookup("config") != nil {
		return
	}
	marked := maps.Clone(c.Annotations)
	if marked == nil {
		marked = make(map[string]string)
	}
	marked[takesVariables] = prefix
	c.Annotations = marked
	for _, name := range variableFlags {
		if f := c.Flags().Lookup(name); f != nil {
			f.Usage += "; or " + variableOf(prefix, name)
		}
	}
}

func variableOf(prefix, flag string) string {
	return prefix + "_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// setVariables sets the flags that were not given. Empty variables say nothing.
func setVariables(c *cobra.Command) error {
	prefix, set := c.Annotations[takesVariables], c.Flags()
	if prefix == "" {
		return nil
	}
	hasStore, hasServer := set.Changed(flagDB), set.Changed(flagURL)
	for _, name := range variableFlags {
		value := os.Getenv(variableOf(prefix, name))
		switch {
		case set.Lookup(name) == nil, set.Changed(name), value == "":
			continue
		case name == flagDB && hasServer:
			continue
		case name == flagURL && hasStore, name == flagTokenFile && !asksServer(set):
			continue
		}
		if err := set.Set(name, value); err != nil {
			return WrongUsage("%s: %v", variableOf(prefix, name), err)
		}
	}
	return nil
}

// asksServer reports whether a command has a server that it asks, for which it may need a token.
func asksServer(set *pflag.FlagSet) bool {
	f := set.Lookup(flagURL)
	return f != nil && f.Value.String() != ""
}
