// Package progress shows how far a long job has come: as a line that is redrawn
// in place on a terminal, and as a line now and then elsewhere.
//
// mpb and go-pretty draw the first, in a goroutine of their own, and not the second. Here the caller's goroutine draws
// both, of the same facts.
package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/partita-go/partita/cmd/internal/human"
	"github.com/partita-go/partita/cmd/internal/term"
)

const (
	// redrawEvery is the time between two drawings of a line.
	redrawEvery = 100 * time.Millisecond
	// lineEvery is the time between two lines where none can be redrawn.
	lineEvery = 2 * time.Second
)

// Config says where and how progress is shown.
type Config struct {
	// Writer takes the output. What it fails to write is lost: progress is not
	// worth an error.
	Writer io.Writer
	// Interactive asks for one line that is redrawn.
	Interactive bool
	// Width is the number of columns, 80 if it is 0.
	Width int
	// Now is the clock, time.Now if it is nil.
	Now func() time.Time
}

// For returns the configuration that suits w and the environment.
func For(w io.Writer) Config {
	return Config{Writer: w, Interactive: term.Interactive(w), Width: term.Width(w)}
}

// Progress shows one phase after the other. Its methods may be called
// concurrently.
type Progress struct {
	config Config

	mu sync.Mutex
	// phase is "" between phases.
	phase       string
	done, total int64
	started     time.Time
	shown       time.Time
}

// New returns a Progress that shows nothing until its first phase.
func New(c Config) *Progress {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Width <= 0 {
		c.Width = term.DefaultWidth
	}
	return &Progress{config: c}
}

// Phase ends the phase before and begins one of so many steps, 0 if nobody knows
// how many.
func (p *Progress) Phase(name string, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.Now()
	p.finish(now)
	p.phase, p.done, p.total = name, 0, total
	p.started, p.shown = now, now
	if p.config.Interactive {
		p.show(now)
	}
}

// Add says that n more steps are done.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	p.maybeShow()
}

// Set says how many steps of the phase are done.
func (p *Progress) Set(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = n
	p.maybeShow()
}

// Done ends the phase, with a last line about it. Without a phase it does
// nothing.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finish(p.config.Now())
}

func (p *Progress) maybeShow() {
	if p.phase == "" {
		return
	}
	every := lineEvery
	if p.config.Interactive {
		every = redrawEvery
	}
	if now := p.config.Now(); now.Sub(p.shown) >= every {
		p.show(now)
	}
}

// show writes the line. What has no room is left out; the last column stays free, else some terminals wrap.
func (p *Progress) show(now time.Time) {
	p.shown = now
	line := p.phase + ": " + strings.Join(p.facts(now), ", ")
	if !p.config.Interactive {
		p.print("%s\n", line)
		return
	}
	room := []rune(line)
	p.print("\r%s\x1b[K", string(room[:min(len(room), p.config.Width-1)]))
}

func (p *Progress) finish(now time.Time) {
	if p.phase == "" {
		return
	}
	took := now.Sub(p.started)
	erase := ""
	if p.config.Interactive {
		erase = "\r\x1b[K"
	}
	p.print("%s%s: %s in %s, %s\n", erase, p.phase, p.count(), human.Duration(took), human.Rate(p.done, took))
	p.phase = ""
}

// count returns what is done, and of how much if that is not all.
func (p *Progress) count() string {
	if p.total <= 0 || p.done == p.total {
		return human.Count(p.done)
	}
	return human.Count(p.done) + " of " + human.Count(p.total)
}

// facts returns what there is to tell, the most important first. When the phase ends is not
// when the job ends: nobody knows how many phases there will be.
func (p *Progress) facts(now time.Time) []string {
	took := now.Sub(p.started)
	if p.total <= 0 {
		return []string{human.Count(p.done), human.Rate(p.done, took)}
	}
	facts := []string{
		human.Count(p.done) + " of " + human.Count(p.total),
		fmt.Sprintf("%d%%", int(100*min(max(float64(p.done)/float64(p.total), 0), 1))),
		human.Rate(p.done, took),
	}
	if p.total > p.done && p.done > 0 {
		left := float64(took) / float64(p.done) * float64(p.total-p.done)
		facts = append(facts, "phase ETA "+human.Duration(time.Duration(left).Round(time.Second/10)))
	}
	return facts
}

// print writes all at once, so that a terminal never shows half a line.
func (p *Progress) print(format string, args ...any) {
	_, _ = fmt.Fprintf(p.config.Writer, format, args...)
}
