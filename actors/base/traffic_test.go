package base

import "testing"

// wanting wants some messages only, and counts them.
type wanting struct {
	Observer
	wants bool
	told  int
}

func (w *wanting) WantsTraffic(Key, any) bool { return w.wants }
func (w *wanting) Received(Traffic)           { w.told++ }
func (w *wanting) Sent(Traffic)               {}

// TestTrafficIsDescribedOnce: a message is described for whoever wants it first, and for nobody else.
func TestTrafficIsDescribedOnce(t *testing.T) {
	for _, wants := range [][]bool{{}, {false}, {false, false}, {true}, {false, true, false, true, true}} {
		var all traffic
		want := 0
		for _, w := range wants {
			all = append(all, &wanting{wants: w})
			if w {
				want = 1
			}
		}
		described := 0
		all.tell(TrafficObserver.Received, Key{}, nil, func() Traffic {
			described++
			return Traffic{}
		})
		if described != want {
			t.Errorf("%v: described %d times, want %d", wants, described, want)
		}
		for i, o := range all {
			if told := o.(*wanting).told == 1; told != wants[i] {
				t.Errorf("%v: %d was told: %v", wants, i, told)
			}
		}
	}
}
