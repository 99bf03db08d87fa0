package base_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/partita-go/partita/actors/base"
)

// keyedDiary has a diary for each actor, but for those of one group.
type keyedDiary struct {
	diary
	of   map[base.Key]*diary
	none string
}

func (d *keyedDiary) ForActor(key base.Key) base.Observer {
	if key.Group == d.none {
		return nil
	}
	d.of[key] = &diary{}
	return d.of[key]
}

// TestObserversTellsAll: each of several is told all, in their order, and one that has another for each actor has it.
func TestObserversTellsAll(t *testing.T) {
	if o := base.Observers(nil, nil); o != nil {
		t.Errorf("of none: got %v", o)
	}
	var order []string
	first, second := &noisyDiary{name: "first", order: &order}, &noisyDiary{name: "second", order: &order}
	if o := base.Observers(nil, first); o != first {
		t.Errorf("of one: got %v", o)
	}
	keyed := &keyedDiary{of: make(map[base.Key]*diary)}
	silent := &keyedDiary{of: make(map[base.Key]*diary), none: "bench"}
	b := newBench(t, newSystem(), 2, base.Observers(first, base.Observers(keyed, silent), second))
	b.Start()
	b.query(1)
	b.run()
	want := []string{"posted bench/1 1", "taken bench/1 1", "handled bench/1 1"}
	for name, d := range map[string]*diary{"first": &first.diary, "second": &second.diary, "keyed": keyed.of[base.Key{Group: "bench", ID: "1"}]} {
		if !slices.Equal(d.entries, want) {
			t.Errorf("%s: got %q, want %q", name, d.entries, want)
		}
	}
	if len(keyed.entries)+len(silent.entries)+len(silent.of) > 0 {
		t.Errorf("got %q, %q, %v: want nothing", keyed.entries, silent.entries, silent.of)
	}
	if want := []string{"first", "second", "first", "second", "first", "second"}; !slices.Equal(order, want) {
		t.Errorf("got the order %q, want %q", order, want)
	}
}

// noisyDiary also writes into a list that others share.
type noisyDiary struct {
	diary
	name  string
	order *[]string
}

func (d *noisyDiary) note(what string, key base.Key, message any) {
	*d.order = append(*d.order, d.name)
	d.write(what, key, message)
}

func (d *noisyDiary) Posted(key base.Key, message any)  { d.note("posted", key, message) }
func (d *noisyDiary) Taken(key base.Key, message any)   { d.note("taken", key, message) }
func (d *noisyDiary) Handled(key base.Key, message any) { d.note("handled", key, message) }

// TestMailboxWithoutObserver: an observer that has none for the actor is as good as none.
func TestMailboxWithoutObserver(t *testing.T) {
	b := newBench(t, newSystem(), 2, &keyedDiary{none: "bench"})
	b.Start()
	b.query(1)
	b.expect(t, 1)
	if got := fmt.Sprint(b.failures); got != "[]" {
		t.Error(got)
	}
}

// trafficDiary is told of traffic too.
type trafficDiary struct{ diary }

func (d *trafficDiary) Received(m base.Traffic) { d.write("received", m.Key, m.Message) }
func (d *trafficDiary) Sent(m base.Traffic)     { d.write("sent", m.Key, m.Message) }

// TestObserversOfTraffic: beside one that is not told of traffic, one that is hears all of it.
func TestObserversOfTraffic(t *testing.T) {
	plain, traffic, keyed := &diary{}, &trafficDiary{}, &keyedDiary{of: make(map[base.Key]*diary)}
	all := base.Observers(plain, base.Observers(keyed, traffic))
	b := newBench(t, newSystem(), 2, all)
	b.Start()
	b.query(1)
	b.run()
	if want := []string{"posted bench/1 1", "received bench/1 1", "taken bench/1 1", "handled bench/1 1"}; !slices.Equal(traffic.entries, want) {
		t.Errorf("got %q, want %q", traffic.entries, want)
	}
	if want := []string{"posted bench/1 1", "taken bench/1 1", "handled bench/1 1"}; !slices.Equal(plain.entries, want) {
		t.Errorf("got %q, want %q", plain.entries, want)
	}
}

// offDiary wants no traffic until it is on.
type offDiary struct {
	trafficDiary
	on bool
}

func (d *offDiary) WantsTraffic(key base.Key, message any) bool {
	d.write("asked", key, message)
	return d.on
}

// TestTrafficSwitch: whoever wants some traffic only is asked once of each message, alone and beside others.
func TestTrafficSwitch(t *testing.T) {
	for name, beside := range map[string]base.Observer{"alone": nil, "beside one that wants none": &diary{}, "beside one that wants all": &trafficDiary{}} {
		t.Run(name, func(t *testing.T) {
			d := new(offDiary)
			m := base.NewMailbox(base.MailboxConfig{Observer: base.Observers(d, beside), Key: base.Key{Group: "bench", ID: "1"}})
			m.TellSent(1)
			d.on = true
			m.TellSent(2)
			if want := []string{"asked bench/1 1", "asked bench/1 2", "sent bench/1 2"}; !slices.Equal(d.entries, want) {
				t.Errorf("got %q, want %q", d.entries, want)
			}
		})
	}
}
