// Package bygroup has rules of groups of actors, as settings give them: by the name of a group.
package bygroup

import (
	"maps"
	"slices"
)

// All is the name for the groups that are not named.
const All = "*"

// Complete returns rules with their defaults, or what is wrong with the first that is wrong, in the order of names.
func Complete[R any](rules map[string]R, complete func(name string, r R) (R, error)) (map[string]R, error) {
	done := make(map[string]R, len(rules))
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		r, err := complete(name, rules[name])
		if err != nil {
			return nil, err
		}
		done[name] = r
	}
	return done, nil
}

// Find returns the rule of a group, or false if it has none.
func Find[R any](rules map[string]R, group string) (r R, ok bool) {
	if r, ok = rules[group]; !ok {
		r, ok = rules[All]
	}
	return r, ok
}
