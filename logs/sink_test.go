package logs_test

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/partita-go/partita/logs"
)

// talking is a core that logs something about each line which says that lines were left out.
type talking struct {
	zapcore.Core
	logger *zap.Logger
}

func (t *talking) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if strings.Contains(e.Message, "left out") {
		t.logger.Info("about it")
	}
	return t.Core.Write(e, fields)
}

// TestSinkThatLogs: while somebody writes that lines were left out, others are left out, and do not wait for that.
func TestSinkThatLogs(t *testing.T) {
	to := &talking{Core: zapcore.NewNopCore()}
	l, err := logs.New(enabled{to}, map[string]logs.Group{"lane": {Rate: 1}})
	check(t, err)
	to.logger = zap.New(l).Named("lane")
	for range 3 {
		to.logger.Info("a")
	}
	done := make(chan error, 1)
	go func() { done <- l.Sync() }()
	select {
	case err := <-done:
		check(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("whoever says that lines were left out waits for himself")
	}
	check(t, l.Sync()) // of the line about it
}

// enabled wants every line.
type enabled struct{ zapcore.Core }

func (enabled) Enabled(zapcore.Level) bool { return true }
