package logs

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/partita-go/partita/internal/bygroup"
	"github.com/partita-go/partita/internal/pace"
	"github.com/partita-go/partita/messages"
)

// AllGroups is the name for the groups that are not named.
const AllGroups = bygroup.All

const (
	// defaultRate is that of [Group.Rate].
	defaultRate = 1000
	// burst is how long a group's lines of so long may come at once: all partitions start at the same time.
	burst = time.Second
	// levels are how many there are.
	levels = zapcore.FatalLevel - zapcore.DebugLevel + 1
)

// Group says which lines of a group are written. The zero value is those from info on, at the default rate.
type Group struct {
	// Level is the least one that is written. Default info.
	Level zapcore.Level
	// Rate is how many lines of each level are written in a second at the most; those of a second may come at once. What
	// is above is left out, and a line says how many those were. Default 1,000.
	Rate int
}

// complete returns the rule of a name with its defaults, or what is wrong with it.
func complete(name string, g Group) (Group, error) {
	g.Rate = cmp.Or(g.Rate, defaultRate)
	if g.Level < zapcore.DebugLevel || g.Level > zapcore.FatalLevel {
		return g, fmt.Errorf("%w: group %q: Level: got %v, want debug to fatal", messages.ErrSettings, name, g.Level)
	}
	if g.Rate < 1 {
		return g, fmt.Errorf("%w: group %q: Rate: got %d, want at least 1", messages.ErrSettings, name, g.Rate)
	}
	return g, nil
}

// rule is a [Group] in force.
type rule struct {
	least  zapcore.Level
	limits [levels]*pace.Limit
}

func newRule(g Group) *rule {
	r := &rule{least: g.Level}
	for i := range r.limits {
		r.limits[i] = pace.New(g.Rate, burst)
	}
	return r
}

// group counts the lines of a group, whatever rules come and go.
type group struct {
	name   string
	rule   atomic.Pointer[rule]
	counts [levels]count
}

// count is of the lines of one level.
type count struct {
	emitted, limited, lost atomic.Uint64

	mu sync.Mutex
	// untold is how many were left out since a line has told so.
	untold uint64
	// timer tells it in a while.
	timer *time.Timer
}

// index returns that of a level; those beyond the ends count as the ends.
func index(l zapcore.Level) int {
	return int(min(max(l, zapcore.DebugLevel), zapcore.FatalLevel) - zapcore.DebugLevel)
}

// groups are those that a line was seen of, or that were named.
type groups struct {
	start time.Time
	// to gets the lines that say what was left out.
	to zapcore.Core
	// least is the least level of any group.
	least  atomic.Int32
	byName atomic.Pointer[map[string]*group] // never changed once it is there

	mu    sync.Mutex
	rules map[string]Group
}

// of returns the group of a logger's name.
func (gs *groups) of(logger string) *group {
	name := logger[strings.LastIndexByte(logger, '.')+1:]
	if g := (*gs.byName.Load())[name]; g != nil {
		return g
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	known := *gs.byName.Load()
	if g := known[name]; g != nil {
		return g
	}
	g := &group{name: name}
	g.rule.Store(newRule(gs.ruleOf(name)))
	next := maps.Clone(known)
	next[name] = g
	gs.byName.Store(&next)
	return g
}

func (gs *groups) ruleOf(name string) Group {
	if g, ok := bygroup.Find(gs.rules, name); ok {
		return g
	}
	return Group{Rate: defaultRate}
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
	least := gs.ruleOf(AllGroups).Level
	for _, g := range complete {
		least = min(least, g.Level)
	}
	gs.least.Store(int32(least))
	for name, g := range *gs.byName.Load() {
		g.rule.Store(newRule(gs.ruleOf(name)))
	}
	return nil
}

// leaveOut counts a line that is not written. The first one sees to it that somebody tells.
func (gs *groups) leaveOut(g *group, e *zapcore.Entry) {
	c := &g.counts[index(e.Level)]
	c.limited.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.untold++; c.untold == 1 {
		level, logger := e.Level, e.LoggerName
		c.timer = time.AfterFunc(burst, func() { gs.tell(c, level, logger) })
	}
}

// tell says how many lines were left out. Whoever calls it for the same lines meanwhile finds that they were told.
func (gs *groups) tell(c *count, level zapcore.Level, logger string) {
	untold := c.tellNow()
	if untold == 0 {
		return
	}
	// Nobody who logs waits for it. If it cannot be written, Stats still tells.
	_ = gs.to.Write(zapcore.Entry{Level: level, Time: time.Now(), LoggerName: logger, Message: "lines above the limit were left out"},
		[]zapcore.Field{zap.Uint64("lines", untold)})
}

// tellNow returns how many lines were left out that were not told. The caller tells.
func (c *count) tellNow() (untold uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.untold > 0 {
		c.timer.Stop()
	}
	untold, c.untold = c.untold, 0
	return untold
}
