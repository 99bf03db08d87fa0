package raftlog

import (
	"fmt"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger gives raft's lines to zap. What raft does not use of the interface does nothing.
type logger struct {
	hclog.Logger
	to *zap.SugaredLogger
}

func newLogger(to *zap.Logger) hclog.Logger {
	return logger{Logger: hclog.NewNullLogger(), to: to.Sugar()}
}

// lines are the fields of a line of this package's own.
func lines(o Options, err error) []zap.Field {
	return []zap.Field{zap.String("node", string(o.Node)), zap.Uint32("shard", uint32(o.Shard)), zap.Error(err)}
}

// levels are those of zap. Raft warns and cries of what it mends itself: a peer that is away.
var levels = map[hclog.Level]zapcore.Level{
	hclog.Trace: zap.DebugLevel, hclog.Debug: zap.DebugLevel, hclog.Info: zap.InfoLevel,
	hclog.Warn: zap.WarnLevel, hclog.Error: zap.WarnLevel,
}

// Log implements [hclog.Logger].
func (l logger) Log(level hclog.Level, msg string, args ...any) {
	if zl := levels[level]; l.to.Desugar().Core().Enabled(zl) {
		l.to.Logw(zl, msg, printable(args)...)
	}
}

// printable formats what hclog leaves to the logger.
func printable(args []any) []any {
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	return args
}

// Trace implements [hclog.Logger], and so on.
func (l logger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }

// Debug is like Trace.
func (l logger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }

// Info is like Trace.
func (l logger) Info(msg string, args ...any) { l.Log(hclog.Info, msg, args...) }

// Warn is like Trace.
func (l logger) Warn(msg string, args ...any) { l.Log(hclog.Warn, msg, args...) }

// Error is like Trace.
func (l logger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

// With implements [hclog.Logger].
func (l logger) With(args ...any) hclog.Logger {
	return logger{Logger: l.Logger, to: l.to.With(printable(args)...)}
}
