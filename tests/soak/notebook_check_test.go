package soak

import (
	"errors"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestNotebook lets a log differ from what was promised.
func TestNotebook(t *testing.T) {
	const events = 3 * pageSize
	promised := func(event uint64) promise {
		return promise{
			plog: messages.PLogOffset(event + 1), workspace: 7, wlog: messages.WLogOffset(event + 1), at: 5,
			numbers: []messages.SequenceNumber{{Seq: seqInvoice, Number: messages.Number(event)}}, body: newBody(3, event),
		}
	}
	isRefused := func(event uint64) bool { return event%10 == 9 }
	isOpen := func(event uint64) bool { return event%10 == 8 }
	for name, tt := range map[string]struct {
		// found is how often an event is in the log, and how it is there.
		found func(event uint64, p *promise) int
		want  string
	}{
		"as promised":             {func(uint64, *promise) int { return 1 }, ""},
		"nothing that is unknown": {func(event uint64, _ *promise) int { return map[bool]int{false: 1}[isOpen(event)] }, ""},
		"one is missing": {func(event uint64, _ *promise) int { return map[bool]int{event != 2000: 1}[true] },
			"client 3, event 2000: it was acknowledged and is not there"},
		"another number": {func(event uint64, p *promise) int {
			if event == 1500 {
				p.numbers[0].Number++
			}
			return 1
		}, "client 3, events 1024 to 2047: one is not as it was acknowledged"},
		"another place": {func(event uint64, p *promise) int {
			if event == 0 {
				p.wlog++
			}
			return 1
		}, "client 3, events 0 to 1023: one is not as it was acknowledged"},
		"one is there twice": {func(event uint64, _ *promise) int { return 1 + map[bool]int{event == 12: 1}[true] },
			"client 3, event 12: it is there twice"},
	} {
		n := notebook{client: 3}
		acked := 0
		for range events {
			event := n.take()
			p := promised(event)
			switch {
			case isRefused(event):
			case isOpen(event):
				n.doubtful(event)
			default:
				acked++
				if !n.acknowledged(event, p.digest()) || n.acknowledged(event, p.digest()) {
					t.Fatal("the first acknowledgement is the only one")
				}
			}
		}
		var faults []error
		for event := range uint64(events) {
			p := promised(event)
			for range tt.found(event, &p) {
				if !isRefused(event) {
					faults = append(faults, n.found(event, p.digest()))
				}
			}
		}
		got, more := n.close()
		text := ""
		if err := errors.Join(append(faults, more...)...); err != nil {
			text = err.Error()
		}
		if text != tt.want || got != acked {
			t.Errorf("%s: got %q and %d acknowledged, want %q and %d", name, text, got, tt.want, acked)
		}
		refused := promised(9)
		if err := n.found(9, refused.digest()); err == nil || !strings.Contains(err.Error(), "it was refused and is there") {
			t.Errorf("a refused one: got %v", err)
		}
		if err := n.found(events, 0); err == nil || !strings.Contains(err.Error(), "nobody has asked for it") {
			t.Errorf("an unknown one: got %v", err)
		}
	}
}
