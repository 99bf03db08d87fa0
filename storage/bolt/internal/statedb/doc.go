// Package statedb reads and writes state.db in a transaction.
//
//	logs.go    where the events of a partition's log stand
//	heads.go   the heads of workspaces, and where the events of their logs stand
//	rows.go    rows: in packs, or in the events that pointers lead to
//	writer.go  what events change of a workspace's head
//	packer.go  pointers become rows in packs
//	periods.go the last numbers of sequences that restart: the newest in heads, older ones behind them
//	search.go  looking for a key where any key can be damaged
//
// A workspace has one head, which names its last events, the records written last and the last packs of records. The other
// events are behind it, in lists of many, and an index leads to the other packs. Each value has a checksum, which covers
// its key: what is not found where it must be is damage.
package statedb
