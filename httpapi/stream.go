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
	log source
}

// stream sends the events of a log as they come, until the client goes or the API is
// stopped.
func (c *call) stream(log source) error {
	if err := log.check(c.r.Context()); err != nil {
		return err
	}
	if !c.api.streams.take() {
		return tooMany("streams", cap(c.api.streams))
	}
	defer c.api.streams.free()
	s := &stream{c, log}
	// Without a deadline a client could hold its stream's place for ever.
	if err := s.bound(); err != nil {
		return fmt.Errorf("the server cannot bound the time of writing: %w", err)
	}
	setCommon(c.w.Header(), streamType)
	c.w.WriteHeader(http.StatusOK)
	ctx, cancel := c.api.whileRunning(c.r.Context())
	defer cancel()
	if err := s.run(ctx); err != nil && ctx.Err() == nil {
		s.tell(ctx, err)
	}
	return nil
}

// run returns why the stream ends.
func (s *stream) run(ctx context.Context) error {
	for {
		for e, err := range s.log.events(ctx) {
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
		if err := s.await(ctx); err != nil {
			return err
		}
	}
}

// await waits for an event, and is never silent for long.
func (s *stream) await(ctx context.Context) error {
	for {
		beat, cancel := context.WithTimeout(ctx, s.api.options.Heartbeat)
		err := s.log.await(beat)
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

// send writes one message. The client reads on behind its id.
func (s *stream) send(ctx context.Context, name string, value any) error {
	data, err := encode(value)
	if err != nil {
		return err
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	return s.write(ctx, fmt.Sprintf("%sid: %s\ndata: %s\n\n", name, s.log.position(), data))
}

// tell sends the problem that ends the stream. It has the id of the event before it.
func (s *stream) tell(ctx context.Context, err error) {
	p := problemOf(err)
	s.call.log(p, err)
	if s.send(ctx, "problem", p) == nil {
		_ = s.flush() // nobody is there to be told of another error
	}
}

// streamPiece is how much the client must accept at a time. Who loses the stream within an
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
