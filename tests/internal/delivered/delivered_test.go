package delivered

import (
	"errors"
	"testing"
)

var one = Log{Subscription: "one", Partition: 7}

// call handles events from an offset to another.
func call(first, last uint64) func(*Book) error {
	return func(b *Book) error {
		return b.Called(Call{Log: one, First: first, Count: last - first + 1, Handled: last - first + 1})
	}
}

// refuse refuses the event behind those that it handles.
func refuse(first, handled uint64, parks bool) func(*Book) error {
	return func(b *Book) error {
		return b.Called(Call{Log: one, First: first, Count: 10, Handled: handled, Parks: parks})
	}
}

func crash(b *Book) error {
	b.Crashed()
	return nil
}

func step(s Step, to uint64) func(*Book) error {
	return func(b *Book) error {
		b.Changed(Change{Log: one, Step: s, To: to})
		return nil
	}
}

func stands(at uint64) func(*Book) error { return func(b *Book) error { return b.Stands(one, at) } }

// TestBook: what is promised is in order, and nothing else is. Only the last step may be wrong.
func TestBook(t *testing.T) {
	for name, tt := range map[string]struct {
		steps            []func(*Book) error
		wrong            bool
		events, repeated uint64
	}{
		"in order":                      {steps: []func(*Book) error{call(1, 3), call(4, 4), call(5, 9), stands(10)}, events: 9},
		"the first is left out":         {steps: []func(*Book) error{call(2, 3)}, wrong: true},
		"one is left out":               {steps: []func(*Book) error{call(1, 3), call(5, 6)}, wrong: true, events: 3},
		"repeated without a crash":      {steps: []func(*Book) error{call(1, 3), call(1, 3)}, wrong: true, events: 3},
		"repeated after a crash":        {steps: []func(*Book) error{call(1, 3), crash, call(1, 5), call(6, 6)}, events: 6, repeated: 3},
		"a part of the batch":           {steps: []func(*Book) error{call(1, 3), crash, call(1, 2), call(3, 3), call(4, 4)}, events: 4, repeated: 3},
		"two batches":                   {steps: []func(*Book) error{call(1, 3), call(4, 5), crash, call(1, 5)}, wrong: true, events: 5},
		"from within the batch":         {steps: []func(*Book) error{call(1, 3), crash, call(2, 5)}, wrong: true, events: 3},
		"overtaken after a crash":       {steps: []func(*Book) error{call(1, 3), crash, call(5, 5)}, wrong: true, events: 3},
		"repeated once":                 {steps: []func(*Book) error{call(1, 3), crash, call(4, 5), call(1, 3)}, wrong: true, events: 5},
		"two crashes":                   {steps: []func(*Book) error{call(1, 3), crash, crash, call(1, 3), crash, call(1, 3)}, events: 3, repeated: 6},
		"refused and tried again":       {steps: []func(*Book) error{refuse(1, 2, false), call(3, 5)}, events: 5},
		"refused and passed over":       {steps: []func(*Book) error{refuse(1, 2, false), call(4, 5)}, wrong: true, events: 2},
		"refused and parked":            {steps: []func(*Book) error{refuse(1, 2, true), refuse(3, 0, true), call(4, 5), stands(6)}, events: 4},
		"the batch before the refused":  {steps: []func(*Book) error{call(1, 3), refuse(4, 0, true), crash, call(1, 3)}, wrong: true, events: 3},
		"while it is paused":            {steps: []func(*Book) error{call(1, 3), step(Paused, 0), call(4, 4)}, wrong: true, events: 3},
		"paused over a crash":           {steps: []func(*Book) error{call(1, 3), step(Paused, 0), crash, call(4, 4)}, wrong: true, events: 3},
		"resumed":                       {steps: []func(*Book) error{call(1, 3), step(Paused, 0), step(Resuming, 0), call(4, 4)}, events: 4},
		"rewound":                       {steps: []func(*Book) error{call(1, 5), step(Moving, 2), step(Moved, 2), call(2, 6), call(7, 7)}, events: 11},
		"rewound, not delivered":        {steps: []func(*Book) error{call(1, 5), step(Moving, 2), step(Moved, 2), call(6, 6)}, wrong: true, events: 5},
		"perhaps rewound":               {steps: []func(*Book) error{call(1, 5), step(Moving, 2), crash, call(2, 5), call(6, 6)}, events: 10},
		"perhaps not":                   {steps: []func(*Book) error{call(1, 5), step(Moving, 2), crash, call(6, 6)}, events: 6},
		"stands behind what is handled": {steps: []func(*Book) error{call(1, 5), stands(7)}, wrong: true, events: 5},
		"stands at its last batch":      {steps: []func(*Book) error{call(1, 5), call(6, 8), stands(6)}, events: 8},
		"stands at one before":          {steps: []func(*Book) error{call(1, 5), call(6, 8), stands(1)}, wrong: true, events: 8},
	} {
		b := NewBook()
		var err error
		for i, step := range tt.steps {
			if err = step(b.Clone()); err != nil && i < len(tt.steps)-1 {
				t.Errorf("%s: step %d: %v", name, i+1, err)
			}
			_ = step(b)
		}
		if errors.Is(err, ErrPromise) != tt.wrong || b.Events != tt.events || b.Repeated != tt.repeated {
			t.Errorf("%s: got %v, %d events, %d repeated, want wrong %v, %d, %d", name, err, b.Events, b.Repeated, tt.wrong, tt.events, tt.repeated)
		}
	}
}
