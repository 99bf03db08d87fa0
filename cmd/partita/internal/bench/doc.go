// Package bench measures what a disk gives to partita: how long a synced write takes, and how many events are appended each
// second by one caller and by many, with a store of its own that it makes and removes. Command is partita bench.
package bench
