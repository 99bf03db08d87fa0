package partition

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/groups"
	"github.com/partita-go/partita/messages"
)

// GroupConfig says what a group of command processors is.
type GroupConfig struct {
	// Name is 1 to 64 of the characters a-z, 0-9 and -. To observers the members are of the group "group-NAME", and
	// their keys are their numbers, from 0 on.
	Name string
	// Members is how many command processors there are at first, 1 to 1,024: [Group.Resize] changes it. Each runs one
	// command after the other, and has a request lane with the bounds of [Application].
	Members int
	// Handler or Drafter, exactly one, says what commands do: as for [App.SpawnCommandProcessor] and
	// [App.SpawnAppendProcessor].
	Handler Handler
	Drafter Drafter
	// Router chooses the members that get a command. Default: by the workspace, whose commands keep their order.
	Router Router
}

func (c *GroupConfig) validate() error {
	const chars = "abcdefghijklmnopqrstuvwxyz0123456789-"
	if c.Name == "" || len(c.Name) > 64 || strings.Trim(c.Name, chars) != "" {
		return fmt.Errorf("%w: name of a group: got %q, want 1 to 64 of a-z, 0-9 and -", messages.ErrSettings, c.Name)
	}
	if (c.Handler == nil) == (c.Drafter == nil) {
		return fmt.Errorf("%w: group %q: want a Handler or a Drafter, not both", messages.ErrSettings, c.Name)
	}
	return nil
}

// namedGroup is a group of the application. It has its name until all its members have ended.
type namedGroup struct {
	name string
	*groups.Group
}

// SpawnGroup starts a group of command processors that serve every partition, behind one handle. It ends with the
// application, or by [Group.Stop]. Package groups says where commands go, and what becomes of them when the group is
// resized.
//
// It returns ErrSettings of package messages if something in c is wrong, ErrGrouped or ErrStopped.
func (a *App) SpawnGroup(c GroupConfig) (*Group, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return nil, ErrStopped
	}
	a.forgetEnded()
	if slices.ContainsFunc(a.groups, func(g namedGroup) bool { return g.name == c.Name }) {
		return nil, fmt.Errorf("%w: %q", ErrGrouped, c.Name)
	}
	config := a.processorConfig(actors.MemberKey(c.Name), actors.CommandProcessorConfig{Handler: c.Handler, Drafter: c.Drafter})
	config.Limit = a.settings.TransactionLimit
	g, err := groups.New(groups.Config{
		Members: c.Members,
		Router:  c.Router,
		Traces:  config.Traces,
		Spawn:   a.memberSpawner(config),
		Left:    func(p *CommandProcessor) { a.hide(func(s shown) bool { return s == shown(p) }) },
	})
	if err != nil {
		return nil, err
	}
	a.groups = append(a.groups, namedGroup{c.Name, g})
	return g, nil
}

// memberSpawner returns what spawns the members of a group. It takes no lock.
func (a *App) memberSpawner(config actors.CommandProcessorConfig) func(int, actors.Observer) (*CommandProcessor, error) {
	return func(number int, o actors.Observer) (*CommandProcessor, error) {
		c := config
		c.Key.ID = strconv.Itoa(number)
		c.Name = a.name(c.Key) + "/" + a.parts.system.ProcessRegistry.NextId() // the key may have been another one's
		c.Observer = actors.Observers(config.Observer, o)
		p, err := actors.SpawnCommandProcessor(c, a.parts.ports)
		if err == nil {
			a.show(p)
		}
		return p, err
	}
}

// processorConfig fills in what all command processors have in common.
func (a *App) processorConfig(key actors.Key, c actors.CommandProcessorConfig) actors.CommandProcessorConfig {
	c.Route = a.SequencerOf
	c.Key = key
	c.System, c.Guardian, c.Dispatcher = a.parts.system, a.parts.guardianOf(key.Group), a.parts.dispatcher
	c.AlarmAfter, c.Restart, c.StatusChanged = a.parts.options.AlarmAfter, a.parts.options.policyOf(key.Group).String(), a.changes.tell
	c.Clock, c.Observer, c.Tally = a.parts.options.Clock, a.parts.options.Observer, a.tally
	c.Traces = a.parts.traces()
	c.Logger = a.parts.loggerOf(a.Name(), key.Group)
	c.Requests, c.RequestBytes = a.app.RequestLane, a.app.RequestLaneBytes
	return c
}

// stopProcessors ends the command processors, and the members of groups, all at the same time.
func (a *App) stopProcessors(ctx context.Context, processors []*CommandProcessor, all []namedGroup, limit time.Duration) error {
	processors = slices.Clip(processors)
	for _, g := range all {
		processors = append(processors, g.Close()...)
	}
	return together(len(processors), func(i int) error { return stopProcessor(ctx, processors[i], limit) })
}
