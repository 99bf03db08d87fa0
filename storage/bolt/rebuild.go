package bolt

// Limits of what is projected in one transaction where tails go into state.db while the log is
// read. More takes more memory. With less it takes longer where the workspaces come in no order:
// each event touches pages of its own then, and each transaction writes them anew.
const (
	maxRebuildEvents = 16_384
	maxRebuildBytes  = 8 << 20
)

// mustProject reports whether the tails are as long as one transaction takes. Those of failed
// partitions stay, and do not count.
func (op *opening) mustProject() bool {
	events, bytes := 0, int64(0)
	for i := range op.partitions {
		if p := &op.partitions[i]; p.failed == nil {
			events, bytes = events+p.tail.len(), bytes+p.tail.bytes
		}
	}
	return events >= maxRebuildEvents || bytes >= maxRebuildBytes
}
