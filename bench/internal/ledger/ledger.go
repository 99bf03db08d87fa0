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
	logs []log
}

// log holds a bit for each number.
type log struct {
	mu    sync.Mutex
	words []uint64
	count uint64
}

// New returns the ledger of a number of logs, from 0 on.
func New(logs int) *Ledger {
	return &Ledger{logs: make([]log, logs)}
}

// maxNumber bounds the memory that one wrong number can take.
const maxNumber = 1 << 34

// Acknowledge notes a number of a log. It fails if the number was noted before.
func (l *Ledger) Acknowledge(logIndex int, number uint64) error {
	if logIndex < 0 || logIndex >= len(l.logs) || number == 0 || number > maxNumber {
		return fmt.Errorf("acknowledged: got number %d of log %d, want 1 to %d of a log below %d", number, logIndex, uint64(maxNumber), len(l.logs))
	}
	if !l.logs[logIndex].add(number - 1) {
		return fmt.Errorf("log %d: number %d was acknowledged twice", logIndex, number)
	}
	return nil
}

// add sets a bit and reports whether it was not set before.
func (l *log) add(bit uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	word, mask := bit/64, uint64(1)<<(bit%64)
	for uint64(len(l.words)) <= word {
		l.words = append(l.words, 0)
	}
	if l.words[word]&mask != 0 {
		return false
	}
	l.words[word] |= mask
	l.count++
	return true
}

// Count returns how many numbers were acknowledged, of all logs.
func (l *Ledger) Count() uint64 {
	count := uint64(0)
	for i := range l.logs {
		l.logs[i].mu.Lock()
		count += l.logs[i].count
		l.logs[i].mu.Unlock()
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
func (l *log) check(stored uint64) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := l.last(); last > stored {
		return 0, fmt.Errorf("acknowledged number %d, got only %d stored", last, stored)
	}
	return stored - l.count, nil
}

// last returns the largest number acknowledged, 0 if there is none.
func (l *log) last() uint64 {
	for i, word := range slices.Backward(l.words) {
		if word != 0 {
			return uint64(i*64 + bits.Len64(word))
		}
	}
	return 0
}
