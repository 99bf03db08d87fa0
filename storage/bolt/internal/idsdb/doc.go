// Package idsdb is ids.db: of each launch the number of its last generator of ids. It is a truth of its own, which the log
// does not know: whoever forgets a number gives it out again.
package idsdb
