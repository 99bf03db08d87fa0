// Package logs decides which log lines are written: by level and group of actors, while a program runs, and so many a
// second. A program that does not import it has none of it.
//
// [Logs] is a [zapcore.Core] around another one:
//
//	l, err := logs.New(core, map[string]logs.Group{logs.AllGroups: {Level: zap.WarnLevel}, "lane": {Level: zap.DebugLevel}})
//	parts := partition.NewAppParts(system, partition.Options{Logger: zap.New(l)})
//	err = l.SetGroups(…)                            // at any time
//	err = l.Sync()                                  // at the end: says what was left out
//
// The group of a line is the last part of its logger's name, as "partition" in "shops.partition". Partita's groups are
// partition, with what its leaves do; command-processor; lane, of a subscription, with what its deliverer does;
// supervisor, which restarts actors; store; http, of package httpapi.
//
// Whoever logs with [log/slog] gives partita the logger that [FromSlog] returns.
package logs
