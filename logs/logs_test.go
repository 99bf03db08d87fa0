package logs_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/partita-go/partita/logs"
	"github.com/partita-go/partita/messages"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newLogs returns logs, and what was written.
func newLogs(t *testing.T, rules map[string]logs.Group) (*logs.Logs, *observer.ObservedLogs) {
	t.Helper()
	core, written := observer.New(zap.DebugLevel)
	l, err := logs.New(core, rules)
	check(t, err)
	return l, written
}

// lines are what was written since the last call.
func lines(written *observer.ObservedLogs) (all []string) {
	for _, e := range written.TakeAll() {
		line := e.LoggerName + " " + e.Level.String() + " " + e.Message
		for _, f := range e.Context {
			line += fmt.Sprintf(" %s=%d", f.Key, f.Integer)
		}
		all = append(all, line)
	}
	return all
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLevels: a group has its own level, those that are not named that of all, and both may change while loggers are in
// use.
func TestLevels(t *testing.T) {
	l, written := newLogs(t, map[string]logs.Group{logs.AllGroups: {Level: zap.WarnLevel}, "lane": {Level: zap.DebugLevel}})
	app := zap.New(l).Named("shops")
	lane, partition := app.Named("lane").With(zap.Int("key", 7)), app.Named("partition")
	log := func() {
		for _, logger := range []*zap.Logger{lane, partition, zap.New(l)} {
			logger.Debug("a")
			logger.Info("b")
			logger.Warn("c")
		}
	}
	log()
	expect(t, lines(written), "shops.lane debug a key=7", "shops.lane info b key=7", "shops.lane warn c key=7", "shops.partition warn c", " warn c")
	check(t, l.SetGroups(map[string]logs.Group{"partition": {Level: zap.ErrorLevel}}))
	log()
	expect(t, lines(written), "shops.lane info b key=7", "shops.lane warn c key=7", " info b", " warn c")
	if l.Enabled(zap.DebugLevel) || !l.Enabled(zap.InfoLevel) {
		t.Error("a line is made that nobody writes, or is not made")
	}
	check(t, l.SetGroups(map[string]logs.Group{logs.AllGroups: {Level: zap.ErrorLevel}}))
	if l.Enabled(zap.WarnLevel) {
		t.Error("a line is made that nobody writes")
	}
}

// TestWrongGroups: one that is wrong changes nothing.
func TestWrongGroups(t *testing.T) {
	l, written := newLogs(t, nil)
	for _, wrong := range []logs.Group{{Level: zap.DebugLevel - 1}, {Level: zap.FatalLevel + 1}, {Rate: -1}} {
		err := l.SetGroups(map[string]logs.Group{"a": {Level: zap.DebugLevel}, "b": wrong})
		if !errors.Is(err, messages.ErrSettings) {
			t.Errorf("%+v: got %v", wrong, err)
		}
		if _, err = logs.New(l, map[string]logs.Group{"b": wrong}); !errors.Is(err, messages.ErrSettings) {
			t.Errorf("%+v: got %v", wrong, err)
		}
	}
	zap.New(l).Named("a").Debug("not written")
	expect(t, lines(written))
}

// TestLimit: of each group and level so many lines are written in a second, and then a line says how many were left out.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, written := newLogs(t, map[string]logs.Group{"lane": {Rate: 2}})
		lane := zap.New(l).Named("shops").Named("lane")
		for range 10 {
			lane.Info("a")
		}
		lane.Warn("b")
		zap.New(l).Named("partition").Info("c")
		expect(t, lines(written), "shops.lane info a", "shops.lane info a", "shops.lane warn b", "partition info c")
		time.Sleep(2 * time.Second) //nolint:forbidigo // the bubble's time
		expect(t, lines(written), "shops.lane info lines above the limit were left out lines=8")
		for range 3 {
			lane.Info("a")
		}
		expect(t, lines(written), "shops.lane info a", "shops.lane info a")
		// At the end nobody waits.
		check(t, l.Sync())
		expect(t, lines(written), "lane info lines above the limit were left out lines=1")
		time.Sleep(2 * time.Second) //nolint:forbidigo // the bubble's time
		expect(t, lines(written))
		if got, want := l.Stats(), []logs.Stats{
			{Group: "lane", Level: zap.InfoLevel, Emitted: 4, Limited: 9}, {Group: "lane", Level: zap.WarnLevel, Emitted: 1},
			{Group: "partition", Level: zap.InfoLevel, Emitted: 1},
		}; !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// failing is a core that writes nothing.
type failing struct{ zapcore.Core }

func (failing) Write(zapcore.Entry, []zapcore.Field) error { return errors.New("full") }

// TestLost: what cannot be written is counted.
func TestLost(t *testing.T) {
	core, _ := observer.New(zap.InfoLevel)
	l, err := logs.New(failing{core}, nil)
	check(t, err)
	logger := zap.New(l, zap.ErrorOutput(zapcore.AddSync(new(discard))))
	logger.Error("a")
	logger.Debug("the core does not want it")
	if got := l.Stats(); !slices.Equal(got, []logs.Stats{{Level: zap.ErrorLevel, Lost: 1}}) {
		t.Errorf("got %+v", got)
	}
}

type discard struct{}

func (*discard) Write(b []byte) (int, error) { return len(b), nil }

// TestConcurrently: lines are counted while rules change.
func TestConcurrently(t *testing.T) {
	l, written := newLogs(t, nil)
	done := make(chan struct{})
	const writers, each = 4, 200
	for range writers {
		go func() {
			for range each {
				zap.New(l).Named("lane").Info("a")
			}
			done <- struct{}{}
		}()
	}
	for i := range 50 {
		check(t, l.SetGroups(map[string]logs.Group{"lane": {Rate: 1 + i%2}}))
	}
	for range writers {
		<-done
	}
	check(t, l.Sync())
	told := 0
	for _, e := range written.All() {
		if e.Message == "a" {
			told++
			continue
		}
		told += int(e.Context[0].Integer)
	}
	if told != writers*each {
		t.Errorf("got %d lines, written or left out, want %d", told, writers*each)
	}
}
