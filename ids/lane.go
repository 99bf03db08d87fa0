package ids

import "sync/atomic"

// lane is a chunk that ids are taken from. What is next to it in memory is not touched by other processors.
type lane struct {
	word atomic.Uint64
	_    [120]byte
}

// A word is the last id that was taken, without the node and with the whole second, so that it only ever grows:
//
//	 63      22  21   10  9      0
//	┌──────────┬────────┬─────────┐
//	│  second  │ chunk  │ counter │
//	└──────────┴────────┴─────────┘
const wordSecondShift = counterBits + chunkBits

func firstOf(second uint64, chunk uint32) (word uint64) {
	return second<<wordSecondShift | uint64(chunk)<<chunkShift | 1
}

// take takes the next id of a second, if the chunk is of that second and not used up. Not alone means that somebody else
// took from the lane meanwhile.
func (l *lane) take(second uint64) (word uint64, taken, alone bool) {
	for alone = true; ; alone = false {
		word = l.word.Load()
		if word>>wordSecondShift != second || word&maxCounter == maxCounter {
			return 0, false, alone
		}
		if l.word.CompareAndSwap(word, word+1) {
			return word + 1, true, alone
		}
	}
}
