package partition

import "context"

// Config is what can change of an application while it runs; the rest of [Application] stays as it was deployed. The zero
// value of each field means its default.
type Config struct {
	Settings Settings
	// RequestLane and RequestLaneBytes are those of [Application]. What waits already stays, also above them.
	RequestLane, RequestLaneBytes int
}

// Config returns the configuration that the application has, with defaults filled in.
func (a *App) Config() Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Config{a.settings, a.app.RequestLane, a.app.RequestLaneBytes}
}

// Configure changes the configuration of every partition and command processor while they run. It returns ErrSettings of package
// messages and changes nothing if something is wrong: what is valid is so for all of them, so none has to be asked. A
// partition that does not answer, since it has ended or ctx has, does not keep the others from changing: the error is all
// of theirs. It is safe for concurrent use, but of two calls at the same time each may win at some partitions.
func (a *App) Configure(ctx context.Context, c Config) error {
	a.mu.Lock()
	app := a.app
	app.Settings, app.RequestLane, app.RequestLaneBytes = c.Settings, c.RequestLane, c.RequestLaneBytes
	app = app.WithDefaults()
	if err := app.Validate(); err != nil {
		a.mu.Unlock()
		return err
	}
	a.settings, a.app.RequestLane, a.app.RequestLaneBytes = app.Settings, app.RequestLane, app.RequestLaneBytes
	for _, p := range a.processors {
		p.SetLimit(app.Settings.TransactionLimit)
		p.SetLane(app.RequestLane, app.RequestLaneBytes)
	}
	for _, g := range a.groups {
		g.Configure(app.Settings.TransactionLimit, app.RequestLane, app.RequestLaneBytes)
	}
	a.mu.Unlock()
	for _, p := range a.partitions {
		p.SetLane(app.RequestLane, app.RequestLaneBytes)
	}
	return together(len(a.partitions), func(i int) error { return a.partitions[i].Reconfigure(ctx, a.parts.ports, app.Settings) })
}

// Reconfigure is [App.Configure] of the settings alone.
func (a *App) Reconfigure(ctx context.Context, s Settings) error {
	c := a.Config()
	c.Settings = s
	return a.Configure(ctx, c)
}
