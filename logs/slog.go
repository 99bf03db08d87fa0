package logs

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// FromSlog returns a logger that writes to a handler of [log/slog], for whatever wants a zap logger. The name of the logger is the
// attribute "logger", a stack "stack"; the levels above error are 12, 16 and 20. Its core can be given to [New].
func FromSlog(h slog.Handler) *zap.Logger { return zap.New(slogCore{h}) }

// slogCore is a core of a handler.
type slogCore struct{ handler slog.Handler }

// slogLevel is four times zap's: so debug, info, warn and error are what they are called.
func slogLevel(l zapcore.Level) slog.Level { return slog.Level(4 * int(l)) }

// Enabled implements [zapcore.Core].
func (c slogCore) Enabled(l zapcore.Level) bool {
	return c.handler.Enabled(context.Background(), slogLevel(l))
}

// With implements [zapcore.Core].
func (c slogCore) With(fields []zapcore.Field) zapcore.Core {
	h, attrs := withFields(c.handler, nil, fields)
	return slogCore{h.WithAttrs(attrs)}
}

// Check implements [zapcore.Core].
func (c slogCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) {
		return checked
	}
	return checked.AddCore(e, c)
}

// Write implements [zapcore.Core].
func (c slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	var first []slog.Attr
	if e.LoggerName != "" {
		first = append(first, slog.String("logger", e.LoggerName))
	}
	if e.Stack != "" {
		first = append(first, slog.String("stack", e.Stack))
	}
	h, attrs := withFields(c.handler, first, fields)
	record := slog.NewRecord(e.Time, slogLevel(e.Level), e.Message, e.Caller.PC)
	record.AddAttrs(attrs...)
	return h.Handle(context.Background(), record)
}

// Sync implements [zapcore.Core].
func (slogCore) Sync() error { return nil }

// withFields returns a handler within the namespaces that the fields open, and the attributes of the innermost one.
func withFields(h slog.Handler, attrs []slog.Attr, fields []zapcore.Field) (slog.Handler, []slog.Attr) {
	for _, f := range fields {
		if f.Type == zapcore.NamespaceType {
			h, attrs = h.WithAttrs(attrs).WithGroup(f.Key), nil
			continue
		}
		// One field may be several, as an error with details is.
		values := zapcore.NewMapObjectEncoder()
		f.AddTo(values)
		for _, name := range slices.Sorted(maps.Keys(values.Fields)) {
			attrs = append(attrs, slog.Any(name, values.Fields[name]))
		}
	}
	return h, attrs
}
