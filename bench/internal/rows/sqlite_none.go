//go:build nopeers || !cgo

package rows

var newSQLite = newAbsent("cgo, which the driver of SQLite needs, or without peers (tag nopeers)")
