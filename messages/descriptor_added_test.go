package messages_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

func tills(partitions uint32, sequences ...messages.Sequence) *messages.Descriptor {
	return &messages.Descriptor{Application: "test", Partitions: partitions, Kinds: []messages.Kind{{ID: 1, Name: "till", Sequences: sequences}}}
}

// TestDescriptorAdded: what an extension adds is told, and what stays is not.
func TestDescriptorAdded(t *testing.T) {
	daily := messages.Restart{Rule: calendar.Rule{Every: calendar.Day}}
	old := tills(1, messages.Sequence{ID: 16, Name: "receipt", Initial: 1, Largest: 999, Restart: daily}, messages.Sequence{ID: 17, Name: "refund", Initial: 1})
	later := daily
	later.Keep, later.Ahead = 3, 2
	is := tills(1,
		messages.Sequence{ID: 16, Name: "receipt", Initial: 1, Largest: 9999, Restart: later, Formats: []string{"{yyyy}{mm}{dd}-{n}"}},
		messages.Sequence{ID: 17, Name: "refund", Initial: 1}, messages.Sequence{ID: 18, Name: "voucher", Initial: 1})
	is.Kinds = append(is.Kinds, messages.Kind{ID: 2, Name: "office"})
	if err := is.Extends(old); err != nil {
		t.Fatal(err)
	}
	got, want := is.Added(old), []string{
		`kind 1 "till", sequence 16 "receipt": largest: 9999, was 999`,
		`kind 1 "till", sequence 16 "receipt": keep: 3, was 0`,
		`kind 1 "till", sequence 16 "receipt": ahead: 2, was 0`,
		`kind 1 "till", sequence 16 "receipt": formats: ["{yyyy}{mm}{dd}-{n}"], was []`,
		`kind 1 "till", sequence 18 "voucher" is new`,
		`kind 2 "office" is new`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := is.Added(is); len(got) > 0 {
		t.Errorf("got %q", got)
	}
}

// TestExtendsTellsAll: every difference is told, up to a bound.
func TestExtendsTellsAll(t *testing.T) {
	old := tills(4, messages.Sequence{ID: 16, Name: "receipt", Initial: 1}, messages.Sequence{ID: 17, Name: "refund", Initial: 1})
	is := tills(8, messages.Sequence{ID: 16, Name: "receipt", Initial: 5, Largest: 99})
	err := is.Extends(old)
	want := `bad application descriptor: partitions: got 8, the store has 4; kind 1 "till", sequence 16 "receipt": initial: got 5, the store has 1; ` +
		`kind 1 "till", sequence 16 "receipt": smaller largest number: got 99, the store has 9223372036854775807; ` +
		`kind 1 "till", sequence 17 "refund": got none, the store has it`
	if !errors.Is(err, messages.ErrDescriptor) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	yearly := messages.Restart{Rule: calendar.Rule{Every: calendar.Year, FirstMonth: time.July}, Zone: "Europe/Zurich"}
	err = tills(1, messages.Sequence{ID: 16, Initial: 1, Restart: yearly}).Extends(tills(1, messages.Sequence{ID: 16, Initial: 1}))
	if want := "restart: got year from July in Europe/Zurich, the store has never"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	for id := range messages.SeqID(20) {
		old.Kinds[0].Sequences = append(old.Kinds[0].Sequences, messages.Sequence{ID: 100 + id, Name: "more", Initial: 1})
	}
	if err := is.Extends(old); !strings.HasSuffix(err.Error(), "; and 16 more") {
		t.Errorf("got %v", err)
	}
}
