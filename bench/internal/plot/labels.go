package plot

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// label names a series in the margin, at the height of its last point.
type label struct {
	text string
	kind kind
	y    vg.Length
}

const (
	labelGap    = 5  // between the data and the lines that lead to labels
	labelLead   = 12 // the width of those lines
	labelHeight = 12
	labelRise   = 1 // letters have more below their middle than above it
)

// place sorts labels by height and returns heights for them that are as near to theirs
// as they can be without overlap: where labels would, they are stacked around their
// mean.
func place(labels []label, bottom, top vg.Length) []vg.Length {
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	type stack struct {
		sum   vg.Length // of where the stack would begin for each of its labels
		count int
	}
	begin := func(s stack) vg.Length { return s.sum / vg.Length(s.count) }
	var stacks []stack
	for i, l := range labels {
		stacks = append(stacks, stack{l.y - labelHeight*vg.Length(i), 1})
		for last := len(stacks) - 1; last > 0 && begin(stacks[last]) <= begin(stacks[last-1]); last-- {
			stacks[last-1].sum += stacks[last].sum
			stacks[last-1].count += stacks[last].count
			stacks = stacks[:last]
		}
	}
	heights := make([]vg.Length, 0, len(labels))
	highest := top - labelHeight*vg.Length(len(labels)-1)
	for _, s := range stacks {
		from := max(bottom, min(begin(s), highest))
		for range s.count {
			heights = append(heights, from+labelHeight*vg.Length(len(heights)))
		}
	}
	return heights
}

// drawLabels draws labels right of the data.
func drawLabels(c draw.Canvas, data draw.Canvas, labels []label) {
	left := data.Max.X + labelGap
	for i, y := range place(labels, data.Min.Y, data.Max.Y) {
		l := labels[i]
		lead := draw.LineStyle{Color: l.kind.color(), Width: vg.Points(0.75)}
		c.StrokeLines(lead, []vg.Point{{X: left, Y: l.y}, {X: left + labelLead, Y: y}})
		c.FillText(lettering(smallText, l.kind.color(), plain), vg.Point{X: left + labelLead + 3, Y: y + labelRise}, l.text)
	}
}
