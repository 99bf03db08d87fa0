package demo

import (
	"github.com/partita-go/partita/cmd/demo/internal/history"
	"github.com/partita-go/partita/messages"
)

// historyFacts are what the history says about itself.
type historyFacts struct {
	commits, nights int
	repositories    map[string]bool
	authors         map[messages.WSID]bool
}

func readHistory(limit int) (historyFacts, error) {
	f := historyFacts{repositories: make(map[string]bool), authors: make(map[messages.WSID]bool)}
	for c, err := range limited(limit) {
		if err != nil {
			return f, err
		}
		f.add(c)
	}
	return f, nil
}

func (f *historyFacts) add(c history.Commit) {
	f.commits++
	if c.Night() {
		f.nights++
	}
	f.repositories[c.Repo] = true
	f.authors[messages.WSID(c.Workspace())] = true
}
