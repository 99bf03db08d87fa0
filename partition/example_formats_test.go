package partition_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// Invoices begin again each year, receipts each day, cases each fiscal year, which begins in July. A number is printed, and
// read again. What was printed before a format was changed is still read.
func Example_formats() {
	year, day := calendar.Rule{Every: calendar.Year}, calendar.Rule{Every: calendar.Day}
	fiscal := calendar.Rule{Every: calendar.Year, FirstMonth: time.July}
	invoice := messages.Sequence{ID: 16, Name: "Invoice", Restart: messages.Restart{Rule: year}, Formats: []string{"INV/{yyyy}/{n:04}", "{yyyy}-{n}"}}
	receipt := messages.Sequence{ID: 17, Name: "Receipt", Restart: messages.Restart{Rule: day}, Formats: []string{"{yyyy}{mm}{dd}-{n}"}}
	file := messages.Sequence{ID: 18, Name: "Case", Restart: messages.Restart{Rule: fiscal}, Formats: []string{"{yyyy}/{fy}-{n:05}"}}
	read := func(s *messages.Sequence, formats messages.Formats, text string) {
		n, err := formats.Parse(text)
		check(err)
		fmt.Println(s.Name, text, "is", n.Number, "of the period from", n.Period)
	}
	for _, s := range []messages.Sequence{invoice, receipt, file} {
		formats, err := s.ParseFormats()
		check(err)
		read(&s, formats, formats.Print(messages.SequenceNumber{Seq: s.ID, Period: s.Restart.PeriodOf(2026_03_29), Number: 42}))
	}
	formats, err := invoice.ParseFormats()
	check(err)
	read(&invoice, formats, "2025-7")
	_, err = formats.Parse("INV/2026/042") // the number 42 is printed as 0042
	fmt.Println(errors.Is(err, messages.ErrSyntax))
	receipt.Formats = []string{"{yyyy}-{n}"} // that does not tell the days apart
	_, err = receipt.ParseFormats()
	fmt.Println(errors.Is(err, messages.ErrDescriptor))
	// Output:
	// Invoice INV/2026/0042 is 42 of the period from 2026-01-01
	// Receipt 20260329-42 is 42 of the period from 2026-03-29
	// Case 2025/2026-00042 is 42 of the period from 2025-07-01
	// Invoice 2025-7 is 7 of the period from 2025-01-01
	// true
	// true
}
