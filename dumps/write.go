package dumps

import (
	"bytes"
	"errors"
	"time"
)

// run is the goroutine that writes.
func (w *Writer) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.buffers.some:
			w.gather()
			w.drain()
		case answer := <-w.reopen:
			w.drain()
			answer <- w.replace()
		case <-w.closing:
			w.drain()
			w.closeErr = errors.Join(w.err(), w.file.Close())
			return
		}
	}
}

// gather waits for more lines: one write for many costs as much as one for one.
func (w *Writer) gather() {
	patience := time.NewTimer(gatherTime)
	defer patience.Stop()
	select {
	case <-w.buffers.much:
	case <-patience.C:
	case <-w.closing:
	}
}

// drain writes all that waits.
func (w *Writer) drain() {
	for i := range w.buffers.each {
		lines := w.buffers.take(i, w.spare)
		w.write(lines)
		w.spare = lines[:0]
	}
}

// write writes lines. Those that the file does not take are given up: on a disk that is full, or slow,
// the next ones need the memory.
func (w *Writer) write(lines []byte) {
	if len(lines) == 0 {
		return
	}
	if err := w.mend(); err != nil {
		w.giveUp(lines, err)
		return
	}
	n, err := w.file.Write(lines)
	if err != nil {
		w.torn = n > 0 && lines[n-1] != '\n'
		w.giveUp(lines[n:], err)
		return
	}
	w.tell(nil)
}

// mend ends a line that was not written wholly, so that the next one can be read.
func (w *Writer) mend() error {
	if !w.torn {
		return nil
	}
	if _, err := w.file.Write([]byte("\n")); err != nil {
		return err
	}
	w.torn = false
	return nil
}

func (w *Writer) giveUp(lines []byte, err error) {
	w.unwritten.Add(uint64(bytes.Count(lines, []byte("\n"))))
	w.tell(err)
}

// tell says that writing fails, or is in order again.
func (w *Writer) tell(err error) {
	if err != nil {
		w.lastErr.Store(&err)
	} else {
		w.lastErr.Store(nil)
	}
	if fails := err != nil; fails != w.isFailing {
		w.isFailing = fails
		w.report(err)
	}
}

func (w *Writer) report(err error) {
	if w.failed != nil {
		w.failed(err)
	}
}

func (w *Writer) err() error {
	if err := w.lastErr.Load(); err != nil {
		return *err
	}
	return nil
}

// replace opens the file anew, unless it is the same.
func (w *Writer) replace() error {
	next, err := w.opener(w.path, w.file)
	if err != nil {
		w.report(err)
		return err
	}
	if next == nil {
		return nil
	}
	before := w.file
	w.file, w.torn = next, false
	return before.Close()
}
