package partition

import (
	"time"
)

// AppFigures are what an application has done since it was deployed, and what it has to do.
type AppFigures struct {
	// At is when it was, by the application's clock.
	At time.Time
	Counts
	// Partitions are as those of App.Status.
	Partitions []Figures
	// Processors are the request lanes of the command processors that have not ended, in the order in which they were spawned.
	Processors []LaneFigures
	// Groups are those that have not ended, in the order in which they were spawned.
	Groups []GroupFigures
}

// GroupFigures are about a group of command processors.
type GroupFigures struct {
	Name string
	// Members are their request lanes, by number: those that leave are not among them.
	Members []LaneFigures
}

// Figures returns what the application has done, and what it has to do. It asks no actor.
func (a *App) Figures() AppFigures {
	f := AppFigures{
		At:         a.parts.options.Clock.Now(),
		Counts:     a.tally.Counts(),
		Partitions: make([]Figures, len(a.partitions)),
	}
	for i, p := range a.partitions {
		f.Partitions[i] = p.Figures()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.processors {
		if !hasEnded(p) {
			f.Processors = append(f.Processors, p.Requests())
		}
	}
	for _, g := range a.groups {
		if !g.Ended() {
			f.Groups = append(f.Groups, GroupFigures{Name: g.name, Members: g.Requests()})
		}
	}
	return f
}
