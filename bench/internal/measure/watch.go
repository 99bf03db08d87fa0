package measure

import (
	"errors"
	"os"
	"runtime/pprof"
)

// watch counts the rounds of background work in a row's window, and makes a CPU
// profile of it.
type watch struct {
	background Background
	wanted     uint64
	profile    string // empty: none

	before uint64 // rounds that had ended when the window began
	rounds uint64
	file   *os.File
}

func (w *watch) Begin() error {
	w.before = w.background.Rounds()
	if w.profile == "" {
		return nil
	}
	var err error
	if w.file, err = os.Create(w.profile); err != nil {
		return err
	}
	return pprof.StartCPUProfile(w.file)
}

func (w *watch) Enough() bool {
	return w.background.Rounds()-w.before >= w.wanted
}

func (w *watch) End() error {
	w.rounds = w.background.Rounds() - w.before
	if w.file == nil {
		return nil
	}
	pprof.StopCPUProfile()
	return errors.Join(w.file.Sync(), w.file.Close())
}
