package demo

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// period is a day or a year of an author.
type period struct {
	author messages.WSID
	seq    messages.SeqID
	first  calendar.Date
}

// periods are the last numbers of each.
type periods map[period]messages.Number

// next counts a commit, and returns the number that it must have.
func (p periods) next(author messages.WSID, seq messages.SeqID, first calendar.Date) messages.SequenceNumber {
	in := period{author: author, seq: seq, first: first}
	p[in]++
	return messages.SequenceNumber{Seq: seq, Period: first, Number: p[in]}
}

// firstOfYear is the 1 January of a date's year.
func firstOfYear(d calendar.Date) calendar.Date { return d/10000*10000 + 101 }

// authorResult is about the days and years of an author, or of all of them.
type authorResult struct {
	Author  string `json:"author,omitempty"`
	Commits number `json:"commits"`
	Years   number `json:"years"`
	Days    number `json:"days"`
	// FullestYear and FullestDay are the last numbers of the year and the day with most
	// commits, as they are printed.
	FullestYear string `json:"fullest_year"`
	FullestDay  string `json:"fullest_day"`
}

// tally is what is known of an author, or of all of them.
type tally struct {
	author      messages.WSID
	commits     messages.Number
	years, days uint64
	// fullestYear and fullestDay are the largest numbers, the first of equal ones.
	fullestYear, fullestDay messages.SequenceNumber
}

// add takes the last number of a period.
func (t *tally) add(last messages.SequenceNumber) {
	if last.Seq == seqDay {
		t.days++
		t.fullestDay = fuller(t.fullestDay, last)
		return
	}
	t.years++
	t.commits += last.Number
	t.fullestYear = fuller(t.fullestYear, last)
}

func fuller(a, b messages.SequenceNumber) messages.SequenceNumber {
	if b.Number > a.Number || b.Number == a.Number && b.Period < a.Period {
		return b
	}
	return a
}

func (t *tally) result(p messages.Printer) authorResult {
	return authorResult{
		Commits: number(t.commits), Years: number(t.years), Days: number(t.days),
		FullestYear: p.Print(kindAuthor, t.fullestYear), FullestDay: p.Print(kindAuthor, t.fullestDay),
	}
}

// shownAuthors is how many authors are shown at most.
const shownAuthors = 5

// busiest returns the authors with most commits, and what all authors have together.
func (p periods) busiest(d messages.Descriptor) (top []authorResult, all authorResult) {
	var sum tally
	of := make(map[messages.WSID]*tally)
	for in, n := range p {
		if of[in.author] == nil {
			of[in.author] = &tally{author: in.author}
		}
		last := messages.SequenceNumber{Seq: in.seq, Period: in.first, Number: n}
		of[in.author].add(last)
		sum.add(last)
	}
	authors := make([]*tally, 0, len(of))
	for _, t := range of {
		authors = append(authors, t)
	}
	slices.SortFunc(authors, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.commits, a.commits), cmp.Compare(a.author, b.author))
	})
	printer := d.Printer()
	for _, t := range authors[:min(len(authors), shownAuthors)] {
		r := t.result(printer)
		r.Author = fmt.Sprintf("%010x", uint64(t.author))
		top = append(top, r)
	}
	return top, sum.result(printer)
}
