package messages

import (
	"fmt"
	"strconv"

	"github.com/partita-go/partita/internal/numfmt"
)

// Formats print and read the numbers of a sequence. They are safe for concurrent use. The zero value
// prints numbers as they are.
type Formats struct{ list numfmt.Formats }

// ParseFormats makes a sequence's formats ready for use. It returns an [ErrDescriptor] that names the
// pattern and the place in it, unless they tell every number of every period apart, all of them together.
//
// A pattern is text with fields: {n} is the number, {n:04} with at least 4 digits; {yyyy}, {mm} and {dd} are the
// year, month and day of the period's first day; {gggg} and {ww} the ISO 8601 year and week; {q} is the quarter, 1
// to 4; {fy} the year in which the fiscal year ends. {{ and }} are braces. A pattern has {n} once, and just
// the fields that name a period: {yyyy}{mm}{dd} if the sequence restarts each day, {gggg}{ww} each
// week, {yyyy}{mm} each month, {yyyy} or {fy} or both each year, and {q} with them each quarter.
func (s *Sequence) ParseFormats() (Formats, error) {
	list, err := numfmt.ParseFormats(s.Formats, s.Restart.Rule)
	if err != nil {
		return Formats{}, fmt.Errorf("%w: sequence %d: %w", ErrDescriptor, s.ID, err)
	}
	return Formats{list}, nil
}

// Append appends a number as it is printed to dst, and returns that. The period of the number must be one of the
// sequence's.
func (f Formats) Append(dst []byte, n SequenceNumber) []byte {
	if format, ok := f.list.Current(); ok {
		return format.Append(dst, n.Period, uint64(n.Number))
	}
	return strconv.AppendUint(dst, uint64(n.Number), 10)
}

// Print returns a number as it is printed.
func (f Formats) Print(n SequenceNumber) string { return string(f.Append(nil, n)) }

// Parse reads a number that was printed, by the first or any other of the formats, and returns its period and
// number: the sequence is not printed. It returns ErrSyntax for any other text, byte by byte. Without a format
// only the number is read.
func (f Formats) Parse(text string) (SequenceNumber, error) {
	if _, ok := f.list.Current(); !ok {
		n, err := ParseNumber(text)
		return SequenceNumber{Number: n}, err
	}
	period, n, err := f.list.Parse(text)
	if err != nil {
		return SequenceNumber{}, fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return SequenceNumber{Period: period, Number: Number(n)}, nil
}

// Printer prints the numbers of an application's sequences. It is safe for concurrent use. The zero value prints
// none.
type Printer struct{ kinds map[WSKind]map[SeqID]Formats }

// Printer returns what prints the numbers of those sequences that have formats. The descriptor must be valid.
func (d *Descriptor) Printer() Printer {
	p := Printer{make(map[WSKind]map[SeqID]Formats)}
	for _, k := range d.Kinds {
		for i := range k.Sequences {
			s := &k.Sequences[i]
			f, err := s.ParseFormats()
			if err != nil || len(s.Formats) == 0 {
				continue
			}
			if p.kinds[k.ID] == nil {
				p.kinds[k.ID] = make(map[SeqID]Formats)
			}
			p.kinds[k.ID][s.ID] = f
		}
	}
	return p
}

// Print returns a number of a workspace of the kind as it is printed, and "" if its sequence has no format.
func (p Printer) Print(kind WSKind, n SequenceNumber) string {
	f, ok := p.kinds[kind][n.Seq]
	if !ok {
		return ""
	}
	return f.Print(n)
}
