package logs

import (
	"maps"
	"slices"
	"time"

	"go.uber.org/zap/zapcore"
)

// Logs is a [zapcore.Core] that passes on to another one what the groups' levels and rates let through. It is safe for
// concurrent use if that one is. It writes what that one is enabled for, whatever Check there says: in front of a
// zapcore.NewTee, all of the tee's cores have the same levels.
type Logs struct {
	to     zapcore.Core
	groups *groups
}

var _ zapcore.Core = (*Logs)(nil)

// New returns a core in front of another one, with rules as SetGroups has them: without any, lines from info on are written, 1,000 a
// second of each group and level. It returns ErrSettings of package messages.
func New(to zapcore.Core, rules map[string]Group) (*Logs, error) {
	l := &Logs{to: to, groups: &groups{start: time.Now(), to: to}}
	l.groups.byName.Store(&map[string]*group{})
	if err := l.SetGroups(rules); err != nil {
		return nil, err
	}
	return l, nil
}

// SetGroups says which lines are written from now on, in place of what was said before; [AllGroups] stands for the groups
// that are not named. It returns ErrSettings of package messages if something is wrong, and changes nothing then.
func (l *Logs) SetGroups(rules map[string]Group) error { return l.groups.set(rules) }

// Enabled implements [zapcore.Core]: it reports whether a line of the level is written in any group.
func (l *Logs) Enabled(level zapcore.Level) bool {
	return int32(level) >= l.groups.least.Load() && l.to.Enabled(level)
}

// With implements [zapcore.Core].
func (l *Logs) With(fields []zapcore.Field) zapcore.Core {
	return &Logs{to: l.to.With(fields), groups: l.groups}
}

// Check implements [zapcore.Core].
func (l *Logs) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	g := l.groups.of(e.LoggerName)
	r := g.rule.Load()
	if e.Level < r.least || !l.to.Enabled(e.Level) {
		return checked
	}
	if !r.limits[index(e.Level)].Allows(time.Since(l.groups.start)) {
		l.groups.leaveOut(g, &e)
		return checked
	}
	return checked.AddCore(e, l)
}

// Write implements [zapcore.Core].
func (l *Logs) Write(e zapcore.Entry, fields []zapcore.Field) error {
	c := &l.groups.of(e.LoggerName).counts[index(e.Level)]
	err := l.to.Write(e, fields)
	if err != nil {
		c.lost.Add(1)
	} else {
		c.emitted.Add(1)
	}
	return err
}

// Sync implements [zapcore.Core]. It also says what was left out and not told yet: call it when nothing is logged any
// more.
func (l *Logs) Sync() error {
	for name, g := range *l.groups.byName.Load() {
		for i := range g.counts {
			l.groups.tell(&g.counts[i], zapcore.DebugLevel+zapcore.Level(i), name)
		}
	}
	return l.to.Sync()
}

// Stats say what became of the lines of one group and level.
type Stats struct {
	Group string
	Level zapcore.Level
	// Emitted lines were written. Limited were above the group's rate. Lost could not be written.
	Emitted, Limited, Lost uint64
}

// Stats returns what became of the lines so far, in order of groups and levels, of those that had any. Lines below a
// group's level are not counted, nor those that say what was left out.
func (l *Logs) Stats() []Stats {
	var all []Stats
	known := *l.groups.byName.Load()
	for _, name := range slices.Sorted(maps.Keys(known)) {
		counts := &known[name].counts
		for i := range counts {
			c := &counts[i]
			s := Stats{name, zapcore.DebugLevel + zapcore.Level(i), c.emitted.Load(), c.limited.Load(), c.lost.Load()}
			if s.Emitted+s.Limited+s.Lost > 0 {
				all = append(all, s)
			}
		}
	}
	return all
}
