// Package ledger remembers every number that was acknowledged, and compares them
// with what is stored: no number may be given twice, left out or lost.
package ledger

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// Ledger holds the numbers of some logs; each log counts from 1. It is safe for
// concurrent use.
type Ledger struct {
	logs []Numbers
}

// Numbers is a set of numbers from 1 on, with a bit for each. It is safe for concurrent
// use.
type Numbers struct {
	mu    sync.Mutex
	words []uint64
	count uint64
}

// New returns the ledger of a number of logs, from 0 on.
func New(logs int) *Ledger {
	return &Ledger{logs: make([]Numbers, logs)}
}

// maxNumber bounds the memory that one wrong number can take.
const maxNumber = 1 << 34

// Acknowledge notes a number of a log. It fails if the number was noted before.
func (l *Ledger) Acknowledge(logIndex int, number uint64) error {
	if logIndex < 0 || logIndex >= len(l.logs) {
		return fmt.Errorf("acknowledged: got log %d, want one below %d", logIndex, len(l.logs))
	}
	added, err := l.logs[logIndex].Add(number)
	if err == nil && !added {
		err = fmt.Errorf("log %d: number %d was acknowledged twice", logIndex, number)
	}
	return err
}

// Add reports whether the number was not in the set before.
func (n *Numbers) Add(number uint64) (added bool, err error) {
	if number == 0 || number > maxNumber {
		return false, fmt.Errorf("got number %d, want 1 to %d", number, uint64(maxNumber))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	word, mask := bitOf(number)
	for len(n.words) <= word {
		n.words = append(n.words, 0)
	}
	if n.words[word]&mask != 0 {
		return false, nil
	}
	n.words[word] |= mask
	n.count++
	return true, nil
}

// Has reports whether a number is in the set.
func (n *Numbers) Has(number uint64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	word, mask := bitOf(number)
	return number > 0 && word < len(n.words) && n.words[word]&mask != 0
}

// Count is how many numbers are in the set.
func (n *Numbers) Count() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.count
}

// bitOf returns the word of a number, and its bit.
func bitOf(number uint64) (word int, mask uint64) {
	return int((number - 1) / 64), uint64(1) << ((number - 1) % 64)
}

// Count returns how many numbers were acknowledged, of all logs.
func (l *Ledger) Count() uint64 {
	count := uint64(0)
	for i := range l.logs {
		count += l.logs[i].Count()
	}
	return count
}

// Check compares the ledger with what is stored: stored[i] is how many events
// log i has, numbered from 1 without gaps. Every acknowledged number must be
// there. Calls that failed may or may not have stored theirs; beyond them nothing
// may be stored.
func (l *Ledger) Check(stored []uint64, failed uint64) error {
	if len(stored) != len(l.logs) {
		return fmt.Errorf("stored: got %d logs, want %d", len(stored), len(l.logs))
	}
	extra := uint64(0)
	for i, n := range stored {
		more, err := l.logs[i].check(n)
		if err != nil {
			return fmt.Errorf("log %d: %w", i, err)
		}
		extra += more
	}
	if extra > failed {
		return fmt.Errorf("got %d events stored and not acknowledged, want at most the %d of failed calls", extra, failed)
	}
	return nil
}

// check returns how many numbers are stored and not acknowledged.
func (n *Numbers) check(stored uint64) (uint64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last := n.last(); last > stored {
		return 0, fmt.Errorf("acknowledged number %d, got only %d stored", last, stored)
	}
	return stored - n.count, nil
}

// last returns the largest number of the set, 0 if there is none.
func (n *Numbers) last() uint64 {
	for i, word := range slices.Backward(n.words) {
		if word != 0 {
			return uint64(i*64 + bits.Len64(word))
		}
	}
	return 0
}
