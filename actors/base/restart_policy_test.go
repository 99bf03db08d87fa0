package base_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/actors/base"
	"github.com/partita-go/partita/ids"
)

// fails lets a patient of a guardian panic, as often as it comes back, and returns the delays before it was restarted, in
// seconds, and whether it has ended.
func fails(t *testing.T, policy base.RestartPolicy, times int) (delays []int, ended bool) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWard(t), &count{}
		policy.MinDelay, policy.MaxDelay, policy.Clock, policy.Jitter = time.Second, 10*time.Second, w.clock, func() float64 { return 0 }
		policy.OnRestart = func(_ *actor.PID, _ any, _ ids.TraceID, _ int, delay time.Duration) {
			delays = append(delays, int(delay.Seconds()))
		}
		policy.OnEnd = func(_ *actor.PID, _ any, _ ids.TraceID, failures int) { ended = failures == len(delays)+1 }
		w.guardian = base.NewGuardian(policy, answerInterrupted)
		_, pid := w.patient(t, n)
		for range times {
			if got := w.ask(t, pid, -1); got != "interrupted -1" {
				t.Fatalf("got %v, want an answer whatever becomes of the actor", got)
			}
			synctest.Wait()
			if ended {
				break
			}
			w.clock.Advance(time.Minute / 2)
			synctest.Wait()
		}
		if (n.stopped.Load() == 1) != ended || n.produced.Load() != int64(len(delays))+1 {
			t.Errorf("got %d incarnations, %d stopped, ended %v", n.produced.Load(), n.stopped.Load(), ended)
		}
	})
	return delays, ended
}

// What becomes of an actor that panics is its policy's to say.
func TestRestartPolicies(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy base.RestartPolicy
		times  int
		delays []int
		ended  bool
		words  string
	}{
		{"default", base.RestartPolicy{}, 5, []int{1, 2, 4, 5, 5}, false, "on-failure, after 10ms to 5s"},
		{"bounded", base.RestartPolicy{MostFailures: 2}, 5, []int{1, 2}, true, "on-failure, after 10ms to 5s, 2 times in a row at the most"},
		{"always", base.RestartPolicy{Mode: base.RestartAlways, MostFailures: 2}, 5, []int{1, 1, 1, 1, 1}, false, "always, after 10ms"},
		{"never", base.RestartPolicy{Mode: base.RestartNever}, 5, nil, true, "never"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.policy.String(); got != tt.words {
				t.Errorf("got %q, want %q", got, tt.words)
			}
			if delays, ended := fails(t, tt.policy, tt.times); !slices.Equal(delays, tt.delays) || ended != tt.ended {
				t.Errorf("got delays of %v s, ended %v, want %v, %v", delays, ended, tt.delays, tt.ended)
			}
		})
	}
}
