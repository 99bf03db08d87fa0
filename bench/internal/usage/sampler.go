package usage

import (
	"context"
	"sync"
	"time"
)

// samplePeriod is how often memory is looked at.
const samplePeriod = 500 * time.Millisecond

// Sampler keeps the largest memory that a process and its descendants had when it
// looked.
type Sampler struct {
	pid    int
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	peak Memory
	err  error
}

// StartSampler looks at a process until it is stopped or the context ends.
func StartSampler(ctx context.Context, pid int) *Sampler {
	s := &Sampler{pid: pid}
	ctx, s.cancel = context.WithCancel(ctx)
	s.done.Go(func() { s.run(ctx) })
	return s
}

// Stop looks for the last time and returns the peak.
func (s *Sampler) Stop() (Memory, error) {
	s.sample()
	s.cancel()
	s.done.Wait()
	return s.peak, s.err
}

func (s *Sampler) run(ctx context.Context) {
	ticker := time.NewTicker(samplePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.sample()
		case <-ctx.Done():
			return
		}
	}
}

func (s *Sampler) sample() {
	m, err := ReadMemory(s.pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = err
		return
	}
	s.peak.Resident = max(s.peak.Resident, m.Resident)
	s.peak.Anonymous = max(s.peak.Anonymous, m.Anonymous)
}
