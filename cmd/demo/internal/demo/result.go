package demo

import (
	"time"

	"github.com/partita-go/partita/storage/bolt"
	"github.com/partita-go/partita/storage/verify"
)

// checkResult is the verdict of the invariant check.
type checkResult struct {
	OK         bool     `json:"ok"`
	Events     number   `json:"events"`
	Workspaces number   `json:"workspaces"`
	Numbers    number   `json:"numbers"`
	Records    number   `json:"records"`
	FaultCount number   `json:"fault_count"`
	Faults     []string `json:"faults"`
	Seconds    seconds  `json:"seconds"`
}

func newCheckResult(r verify.Report, took time.Duration) *checkResult {
	c := &checkResult{
		OK: r.FaultCount == 0, Events: number(r.Events), Workspaces: number(r.Workspaces),
		Numbers: number(r.Numbers), Records: number(r.Rows), FaultCount: number(r.FaultCount),
		Faults: []string{}, Seconds: seconds(took),
	}
	for _, f := range r.Faults {
		c.Faults = append(c.Faults, f.String())
	}
	return c
}

// fileSizes are the sizes of a store's files.
type fileSizes struct {
	Log   number `json:"log"`
	State number `json:"state"`
}

func sizesOf(s bolt.Stats) fileSizes {
	return fileSizes{Log: number(s.LogSize), State: number(s.StateSize)}
}
