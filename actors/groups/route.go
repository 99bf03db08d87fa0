package groups

import (
	"fmt"
	"slices"

	"github.com/partita-go/partita/messages"
)

// Router chooses the members of a group that get a command, of as many as there are: they count from 0. It runs on
// the sender's goroutine, on several at the same time, and again if the number of members changes meanwhile. It must
// not change the command, nor keep it.
type Router func(c *messages.Command, members int) Route

// Route is what a [Router] chooses. The zero Route is no member.
type Route struct {
	all     bool
	members []int
}

// ToMembers chooses members by their numbers. One that is named twice gets the command once.
func ToMembers(members ...int) Route {
	members = slices.Clone(members)
	slices.Sort(members)
	return Route{members: slices.Compact(members)}
}

// ToAll chooses all members.
func ToAll() Route { return Route{all: true} }

// ToNone chooses no member: whoever has sent the command gets [ErrNoMember].
func ToNone() Route { return Route{} }

// of returns those that are chosen.
func (r Route) of(members []*member) ([]*member, error) {
	if r.all {
		return slices.Clone(members), nil
	}
	if len(r.members) == 0 {
		return nil, ErrNoMember
	}
	chosen := make([]*member, len(r.members))
	for i, n := range r.members {
		if n < 0 || n >= len(members) {
			return nil, fmt.Errorf("%w: got member %d, want 0 to %d", ErrRoute, n, len(members)-1)
		}
		chosen[i] = members[n]
	}
	return chosen, nil
}

// MemberOf returns the member that a workspace belongs to, of so many, at least 1. When there is one more member, one
// workspace in so many belongs to the new one, and no other changes.
//
// It is the jump consistent hash of John Lamping and Eric Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm",
// 2014, arXiv:1406.2294, of the WSID.
func MemberOf(ws messages.WSID, members int) int {
	const span = 1 << 31
	key, at := uint64(ws), int64(0)
	for next := int64(0); next < int64(members); {
		at = next
		key = key*2862933555777941757 + 1
		next = int64(float64(at+1) * (span / float64(key>>33+1)))
	}
	return int(at)
}
