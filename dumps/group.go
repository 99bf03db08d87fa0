package dumps

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/partita-go/partita/internal/bygroup"
	"github.com/partita-go/partita/internal/pace"
	"github.com/partita-go/partita/messages"
)

// AllGroups is the name for the groups that are not named.
const AllGroups = bygroup.All

// What a [Group] has by default, and the largest line.
const (
	defaultRate    = 100_000
	defaultLongest = 4096
	maxLongest     = 256 << 10
)

// burst is how long a group's lines of so long may come at once.
const burst = time.Second / 10

// Group says what is dumped of a group of actors. The zero value is everything, at the default rate.
type Group struct {
	// Messages are the names of the types of messages that are dumped, like "Append". None means all.
	Messages []string
	// Rate is how many lines there are in a second at the most, and a tenth more at once. What is above is
	// not written, and its sequence number is used. Default 100,000.
	Rate int
	// Bodies shows the bodies of events and commands, and the data of records: all that is bytes. Else
	// they are "<hidden>". What has the tag `dump:"hidden"` is hidden all the same.
	Bodies bool
	// Longest is how long a text may be, and about how long a message may become, in bytes: what is longer
	// is cut, and says so. Default 4,096, at most 262,144.
	Longest int
}

// complete returns the rule of a name with its defaults, or what is wrong with it.
func complete(name string, g Group) (Group, error) {
	g.Rate, g.Longest = cmp.Or(g.Rate, defaultRate), cmp.Or(g.Longest, defaultLongest)
	if g.Rate < 1 {
		return g, fmt.Errorf("%w: group %q: Rate: got %d, want at least 1", messages.ErrSettings, name, g.Rate)
	}
	if g.Longest < 16 || g.Longest > maxLongest {
		return g, fmt.Errorf("%w: group %q: Longest: got %d, want 16 to %d", messages.ErrSettings, name, g.Longest, maxLongest)
	}
	return g, nil
}

// rule is a [Group] in force.
type rule struct {
	names   map[string]bool // nil means all
	limit   *pace.Limit
	bodies  bool
	longest int
}

func newRule(g Group) *rule {
	r := &rule{limit: pace.New(g.Rate, burst), bodies: g.Bodies, longest: g.Longest}
	if len(g.Messages) > 0 {
		r.names = make(map[string]bool, len(g.Messages))
		for _, name := range g.Messages {
			r.names[name] = true
		}
	}
	return r
}

func (r *rule) wants(name string) bool { return r.names == nil || r.names[name] }

// group counts a group of actors, whatever rules come and go.
type group struct {
	name string
	// head is how its lines begin behind the time.
	head string
	// rule is nil if nothing of it is dumped.
	rule                           atomic.Pointer[rule]
	number, emitted, limited, lost atomic.Uint64
}

// groups are those that a message was seen of, or that were named.
type groups struct {
	byName atomic.Pointer[map[string]*group] // never changed once it is there

	// some says that there are rules.
	some atomic.Bool

	mu    sync.Mutex
	rules map[string]Group
}

// of returns the group of a name.
func (gs *groups) of(name string) *group {
	if g := (*gs.byName.Load())[name]; g != nil {
		return g
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	known := *gs.byName.Load()
	if g := known[name]; g != nil {
		return g
	}
	g := &group{name: name, head: `","g":` + string(appendText(nil, name, math.MaxInt))}
	g.rule.Store(gs.ruleOf(name))
	next := maps.Clone(known)
	next[name] = g
	gs.byName.Store(&next)
	return g
}

// ruleOf returns the rule of a group, nil if nothing of it is dumped.
func (gs *groups) ruleOf(name string) *rule {
	if g, ok := bygroup.Find(gs.rules, name); ok {
		return newRule(g)
	}
	return nil
}

// set changes all rules, or none.
func (gs *groups) set(rules map[string]Group) error {
	complete, err := bygroup.Complete(rules, complete)
	if err != nil {
		return err
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.rules = complete
	gs.some.Store(len(complete) > 0)
	for name, g := range *gs.byName.Load() {
		g.rule.Store(gs.ruleOf(name))
	}
	return nil
}
