package httpapi

import (
	"cmp"
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Options are the limits of an API. The zero value of each field means its default.
type Options struct {
	// MaxBody is the largest body of a request, in bytes. Default 1 MiB.
	MaxBody int64
	// PageBytes is how much a page holds, in bytes, about: it ends behind the event that
	// exceeds it. Default 1 MiB.
	PageBytes int
	// LongPolls is how many requests may wait for an event at the same time. Default 512.
	LongPolls int
	// Streams is how many streams of events may be open at the same time. Default 256.
	Streams int
	// AppendTimeout is how long an append may take. Default 10 s.
	AppendTimeout time.Duration
	// ChangeTimeout is how long a change of a subscription may wait for its handler. Default
	// 90 s: handlers have 1 min if they are not given another limit.
	ChangeTimeout time.Duration
	// CatchUp is how long a read may wait until what is here has come to a place that the client has seen elsewhere, with
	// consistency=local or at_least. Default 5 s.
	CatchUp time.Duration
	// BodyTimeout is how long a client may take to send the body of a request. Default
	// 10 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take to accept an answer, or 16 KiB of a
	// stream. Default 10 s.
	WriteTimeout time.Duration
	// Heartbeat is how long a stream is silent at the most. Default 15 s.
	Heartbeat time.Duration
	// Others returns the statuses of what is no actor, as of the server that has the API: /v1/status has them behind
	// those of the actors. It is called by many goroutines, and each second by each stream. Default: there are none.
	Others func() []ActorStatus
	// Logger gets the causes of the answers 500 and 503 that do not tell them, of each kind
	// of problem a few a second at the most. Default: none.
	Logger *zap.Logger
}

// WithDefaults returns a copy in which every zero field has its default.
func (o Options) WithDefaults() Options {
	o.MaxBody = cmp.Or(o.MaxBody, 1<<20)
	o.PageBytes = cmp.Or(o.PageBytes, 1<<20)
	o.LongPolls = cmp.Or(o.LongPolls, 512)
	o.Streams = cmp.Or(o.Streams, 256)
	o.AppendTimeout = cmp.Or(o.AppendTimeout, 10*time.Second)
	o.ChangeTimeout = cmp.Or(o.ChangeTimeout, 90*time.Second)
	o.CatchUp = cmp.Or(o.CatchUp, 5*time.Second)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, 10*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 10*time.Second)
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o
}

// How many lines of one text are logged each second, and of how many more one.
const (
	linesEachSecond = 5
	thenOneOf       = 1000
)

// sampled returns a logger that a disk which is full, or a damaged event, cannot flood.
func sampled(l *zap.Logger) *zap.Logger {
	return l.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(core, time.Second, linesEachSecond, thenOneOf)
	}))
}

// Validate returns an [ErrOptions] that names the first wrong option, or nil. It expects
// defaults to be filled in.
func (o Options) Validate() error {
	for _, n := range []struct {
		name string
		got  int64
	}{
		{"MaxBody", o.MaxBody},
		{"PageBytes", int64(o.PageBytes)},
		{"LongPolls", int64(o.LongPolls)},
		{"Streams", int64(o.Streams)},
		{"AppendTimeout", int64(o.AppendTimeout)},
		{"ChangeTimeout", int64(o.ChangeTimeout)},
		{"CatchUp", int64(o.CatchUp)},
		{"BodyTimeout", int64(o.BodyTimeout)},
		{"WriteTimeout", int64(o.WriteTimeout)},
		{"Heartbeat", int64(o.Heartbeat)},
	} {
		if n.got < 1 {
			return fmt.Errorf("%w: %s: got %d, want at least 1", ErrOptions, n.name, n.got)
		}
	}
	return nil
}
