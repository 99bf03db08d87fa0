package metrics

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// SetKeys changes the groups of actors of which each actor has series of its own: see [Options.Keys]. What a group has
// counted until then is told no more, and it begins from 0, as after a start.
func (m *Metrics) SetKeys(keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.options.Keys
	m.options.Keys = slices.Clone(keys)
	for key, g := range maps.Clone(m.groups) {
		if slices.Contains(before, key.Group) == slices.Contains(keys, key.Group) {
			continue
		}
		delete(m.groups, key)
		labels := prometheus.Labels{"actor_group": key.Group, "actor_key": key.ID}
		m.handling.DeletePartialMatch(labels)
		m.waiting.DeletePartialMatch(labels)
		for a := range g.members {
			a.move(m.groupOf(a.key))
		}
	}
}

// move counts what an actor does in another group from now on. What is under way may be counted in the one before.
func (a *watchedActor) move(to *group) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := a.group.Swap(to)
	from.count(a.life, -1)
	to.count(a.life, 1)
	to.members[a] = struct{}{}
}
