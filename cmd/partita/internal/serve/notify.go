package serve

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// manager is the service manager that has started the program, systemd or one like it, if any has: then the environment
// says where it listens (sd_notify) and how often it wants to hear something.
type manager struct {
	logger *zap.Logger
}

// tell sends a state. Without a service manager it does nothing.
func (m manager) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.logger.Warn("the service manager cannot be told", zap.String("state", state), zap.Error(err))
	}
}

// moreTime is how much time a start may take from each message about it on: systemd ends what does not start in time.
const moreTime = 2 * time.Minute

// starting says what is done before the application is ready, and that it goes on.
func (m manager) starting(what string) {
	m.tell(fmt.Sprintf("STATUS=%s\nEXTEND_TIMEOUT_USEC=%d", what, moreTime.Microseconds()))
}

// statusEvery is how often somebody looks whether the status has changed.
const statusEvery = 5 * time.Second

// follow tells when the application has started, that the process lives, and what its partitions do, until ctx ends. It
// has also started if some partitions have failed: the others are served, and a restart would not mend those.
func (m manager) follow(ctx context.Context, own *served) {
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.logger.Warn("the watchdog of the service manager is not understood", zap.Error(err))
	}
	_ = own.ready(ctx) // the status says what has failed
	if ctx.Err() != nil {
		return
	}
	status := own.status()
	m.tell(daemon.SdNotifyReady + "\nSTATUS=" + status)
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return // nobody is told
	}
	every, looked := statusEvery, time.Now()
	if interval > 0 {
		every = min(every, interval/2) // twice in its time, as sd_watchdog_enabled(3) has it
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if interval > 0 {
			m.tell(daemon.SdNotifyWatchdog)
		}
		if time.Since(looked) < statusEvery {
			continue
		}
		looked = time.Now()
		if now := own.status(); now != status {
			status = now
			m.tell("STATUS=" + status)
		}
	}
}

// statusOf says in a line what the partitions do: of those that take no events, what the first one does.
func statusOf(app *partition.App) string {
	for _, s := range app.Status() {
		switch {
		case s.State == messages.StateFailed:
			return "some partitions have failed: the status of each says why"
		case s.Full != nil:
			return "refusing appends: " + storage.ErrFull.Error()
		case s.State != messages.StateNormal && s.State != messages.StateAlarming:
			return fmt.Sprintf("partition %d is %v", s.Partition, s.State)
		}
	}
	return "all partitions take events"
}

// startNotifying follows what is served until ctx ends, and tells then that the program stops. What it returns ends it sooner,
// and waits until that is told: an end that is quick must not overtake the message about it.
func (s *server) startNotifying(ctx context.Context, own *served) (end func()) {
	m := manager{s.logger}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		m.follow(ctx, own)
		m.tell(daemon.SdNotifyStopping)
	}()
	return func() {
		cancel()
		<-ended
	}
}
