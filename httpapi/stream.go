package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const streamType = "text/event-stream"

// stream is an answer with server-sent events: see the section of that name in the HTML
// standard.
type stream struct {
	*call
	// position is the id of the next message, nil if messages have none.
	position func() string
}

// stream sends the events of a log as they come, until the client goes or the API is
// stopped.
func (c *call) stream(log source) error {
	if err := log.check(c.r.Context()); err != nil {
		return err
	}
	return c.streams(log.position, func(ctx context.Context, s *stream) error { return s.runLog(ctx, log) })
}

// streams answers with a stream whose messages run sends. It sends the error of run, unless the client has gone or the API
// was stopped.
func (c *call) streams(position func() string, run func(context.Context, *stream) error) error {
	if !c.api.streams.take() {
		return tooMany("streams", cap(c.api.streams))
	}
	defer c.api.streams.free()
	s := &stream{c, position}
	// Without a deadline a client could hold its stream's place for ever.
	if err := s.bound(); err != nil {
		return fmt.Errorf("the server cannot bound the time of writing: %w", err)
	}
	setCommon(c.w.Header(), streamType)
	c.w.WriteHeader(http.StatusOK)
	ctx, cancel := c.api.whileRunning(c.r.Context())
	defer cancel()
	if err := run(ctx, s); err != nil && ctx.Err() == nil {
		s.tell(ctx, err)
	}
	return nil
}

// runLog returns why the stream of a log ends.
func (s *stream) runLog(ctx context.Context, log source) error {
	for {
		for e, err := range log.events(ctx) {
			if err != nil {
				return err
			}
			if err := s.send(ctx, "", EventOf(&e, s.api.printer)); err != nil {
				return err
			}
		}
		if err := s.flush(); err != nil {
			return err
		}
		if err := s.await(ctx, log.await); err != nil {
			return err
		}
	}
}

// await waits for what is to be sent, and is never silent for long.
func (s *stream) await(ctx context.Context, await func(context.Context) error) error {
	for {
		beat, cancel := context.WithTimeout(ctx, s.api.options.Heartbeat)
		err := await(beat)
		silent := beat.Err() != nil
		cancel()
		if err == nil || !silent || ctx.Err() != nil {
			return err
		}
		if err := s.write(ctx, ": nothing new\n\n"); err != nil {
			return err
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}

// send writes one message. The client reads on behind its id, if it has one.
func (s *stream) send(ctx context.Context, name string, value any) error {
	data, err := encode(value)
	if err != nil {
		return err
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if s.position != nil {
		name += "id: " + s.position() + "\n"
	}
	return s.write(ctx, fmt.Sprintf("%sdata: %s\n\n", name, data))
}

// tell sends the problem that ends the stream. It has the id of the event before it.
func (s *stream) tell(ctx context.Context, err error) {
	p := problemOf(err)
	s.call.log(p, err)
	if s.send(ctx, "problem", p) == nil {
		_ = s.flush() // nobody is there to be told of another error
	}
}

// streamPiece is how much the client must accept at a time. Whoever loses the stream within an
// event is sent all of it again: over a slow line a large one would never come to its end.
const streamPiece = 16 << 10

// write ends with the context, also within an event: a slow client must not hold up a stop
// for as long as it takes all of it.
func (s *stream) write(ctx context.Context, text string) error {
	for piece := range slices.Chunk([]byte(text), streamPiece) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.bound(); err != nil {
			return err
		}
		if _, err := s.w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) flush() error {
	if err := s.bound(); err != nil {
		return err
	}
	return s.control.Flush()
}

// bound gives the client time to accept what is written next.
func (s *stream) bound() error {
	return s.control.SetWriteDeadline(time.Now().Add(s.api.options.WriteTimeout))
}
