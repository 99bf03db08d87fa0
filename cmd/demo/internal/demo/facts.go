package demo

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/partita-go/partita/cmd/demo/internal/history"
	"github.com/partita-go/partita/messages"
)

// shownAuthors is how many of the busiest authors are shown.
const shownAuthors = 10

// historyFacts are what the history says about itself.
type historyFacts struct {
	commits, nights int
	repositories    map[string]bool
	// authors counts each author's commits by repository.
	authors map[messages.WSID]map[string]int
}

func readHistory(limit int) (historyFacts, error) {
	f := historyFacts{repositories: make(map[string]bool), authors: make(map[messages.WSID]map[string]int)}
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
	author := messages.WSID(c.Workspace())
	if f.authors[author] == nil {
		f.authors[author] = make(map[string]int)
	}
	f.authors[author][c.Repo]++
}

// home returns the repository in which an author did most.
func (f *historyFacts) home(ws messages.WSID) string {
	best := ""
	for repo, n := range f.authors[ws] {
		if most := f.authors[ws][best]; n > most || n == most && repo < best {
			best = repo
		}
	}
	return best
}

// busiest returns the authors with the most commits, and their last numbers.
func (f *historyFacts) busiest(s scan) []authorResult {
	all := make([]*author, 0, len(s.authors))
	for _, a := range s.authors {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *author) int {
		return cmp.Or(cmp.Compare(b.commits, a.commits), cmp.Compare(a.ws, b.ws))
	})
	results := []authorResult{}
	for _, a := range all[:min(shownAuthors, len(all))] {
		results = append(results, authorResult{
			Author: fmt.Sprintf("%010x", uint64(a.ws)), Workspace: number(a.ws), Repository: f.home(a.ws),
			Commits: number(a.commit), Nights: number(a.nights), LastRecord: number(a.row),
			NightShare: float64(a.nights) / float64(max(a.commits, 1)),
		})
	}
	return results
}
