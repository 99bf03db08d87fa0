package bolt

// pieceOfTail is which part of Options.TailBytes is read while Open projects before that is written.
const pieceOfTail = 4

// mustProject reports whether the tails are as long as one transaction takes where they go into
// state.db while the log is read: as a store in use may have them. With less it takes longer where the
// workspaces come in no order: each event touches pages of its own then, and each transaction
// writes them anew. The tails of failed partitions stay, and do not count.
func (op *opening) mustProject() bool {
	var size tailSize
	events := 0
	for i := range op.partitions {
		if p := &op.partitions[i]; p.failed == nil {
			events += p.tail.len()
			size.add(p.tail.size)
		}
	}
	return events >= min(maxFlushEvents, op.options.TailEvents) || size.reaches(op.options.TailBytes/pieceOfTail)
}
