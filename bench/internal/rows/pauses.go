package rows

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/partita-go/partita/bench/internal/load"
)

// longestPause is how long a transaction that pauses does so at most; each time from 0 on
// is as likely as any other.
const longestPause = 300 * time.Millisecond

// pauses are those of one caller, the same ones in every row.
type pauses struct {
	random  *rand.Rand
	longest time.Duration
}

// newPauses returns those of each caller.
func newPauses(callers int, longest time.Duration) []pauses {
	all := make([]pauses, callers)
	for i := range all {
		all[i] = pauses{random: rand.New(rand.NewPCG(uint64(i), 2)), longest: longest}
	}
	return all
}

// wait takes the next pause.
func (p *pauses) wait(ctx context.Context) error {
	if p.longest == 0 {
		return nil
	}
	return load.Pause(ctx, time.Duration(p.random.Int64N(int64(p.longest)+1)))
}
