// Package idsdb is ids.db: of each launch the number of its last generator of ids. It is a truth of its own, which the log of a
// store does not know: whoever forgets a number gives it out again. Where a replicated log is, the numbers are in its entries,
// too, which each node forgets some time after it has noted them here.
package idsdb
