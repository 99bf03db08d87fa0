// Package config reads the configuration of partita serve: from a file, from the environment and from flags, of which the
// later ones go before the earlier ones. [Config] is the one list of all settings: names of flags, variables and
// members of the file are made from its fields.
package config
