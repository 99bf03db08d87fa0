package messages_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/partita-go/partita/messages"
)

// Numbers and questions come in any order, and numbers join between questions.
func TestNumberSetIsContains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Custom(func(t *rapid.T) messages.SequenceNumber {
			return messages.SequenceNumber{Seq: messages.SeqID(rapid.IntRange(1, 2).Draw(t, "seq")), Number: messages.Number(rapid.IntRange(1, 90).Draw(t, "number"))}
		})
		var set messages.NumberSet
		var numbers []messages.SequenceNumber
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			numbers = append(numbers, rapid.SliceOfN(number, 0, 30).Draw(t, "given")...)
			asked := append(rapid.SliceOfN(number, 0, 10).Draw(t, "asked"), numbers...)
			if rapid.Bool().Draw(t, "backwards") {
				slices.Reverse(asked)
			}
			for _, id := range asked {
				if got, want := set.Has(numbers, id), slices.Contains(numbers, id); got != want {
					t.Fatalf("%v among %v: got %v, want %v", id, numbers, got, want)
				}
			}
		}
	})
}

// The time of a question must not grow with the numbers.
func BenchmarkNumberSet(b *testing.B) {
	for _, n := range []int{16, 1 << 10, messages.MaxEventNumbers} {
		numbers := make([]messages.SequenceNumber, n)
		for i := range numbers {
			numbers[i] = messages.SequenceNumber{Seq: 1, Number: messages.Number(i)}
		}
		for _, order := range []string{"forwards", "backwards"} {
			b.Run(fmt.Sprintf("%d/%s", n, order), func(b *testing.B) {
				for range b.N {
					var set messages.NumberSet
					for i := range numbers {
						if order == "backwards" {
							i = n - 1 - i
						}
						if !set.Has(numbers, numbers[i]) {
							b.Fatal("got a number that is not among its own")
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/id")
			})
		}
	}
}
