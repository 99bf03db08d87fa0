package plot

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// frame returns an empty picture whose axes say what they show.
func frame(x, y string) *plot.Plot {
	picture := plot.New()
	picture.BackgroundColor = nil
	for _, axis := range []*plot.Axis{&picture.X, &picture.Y} {
		axis.LineStyle = draw.LineStyle{Color: textColor, Width: vg.Points(0.75)}
		axis.Padding = 0
		axis.Tick.LineStyle = axis.LineStyle
		axis.Tick.Length = vg.Points(4)
		axis.Tick.Label.Color, axis.Tick.Label.Font = textColor, plain
		axis.Tick.Label.Font.Size = vg.Points(smallText)
		axis.Label.TextStyle.Color, axis.Label.TextStyle.Font = textColor, plain
		axis.Label.TextStyle.Font.Size = vg.Points(smallText)
		axis.Label.Padding = vg.Points(3)
	}
	picture.X.Label.Text, picture.Y.Label.Text = x, y
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal = draw.LineStyle{Color: gridColor, Width: vg.Points(0.75)}
	picture.Add(grid)
	return picture
}

// axes returns an empty picture of a panel.
func axes(p panel, lowest, highest float64) *plot.Plot {
	picture := frame(p.x, "events a second")
	picture.X.Scale = plot.LogScale{}
	picture.X.Min, picture.X.Max = p.ticks[0], p.ticks[len(p.ticks)-1]
	picture.X.Tick.Marker = labelled(p.ticks)

	ticks := linearTicks(highest)
	if p.logY {
		ticks = logTicks(lowest, highest)
		picture.Y.Scale = plot.LogScale{}
	}
	picture.Y.Min, picture.Y.Max = ticks[0], ticks[len(ticks)-1]
	picture.Y.Tick.Marker = labelled(ticks)
	return picture
}

// labelled returns ticks with labels.
func labelled(values []float64) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, len(values))
	for i, v := range values {
		ticks[i] = plot.Tick{Value: v, Label: thousands(v)}
	}
	return ticks
}

// linearTicks returns four to six ticks from 0 on; only the last one is not below the
// highest value.
func linearTicks(highest float64) []float64 {
	decade := math.Pow(10, math.Floor(math.Log10(highest)))
	step := decade / 4
	for _, larger := range []float64{decade / 2, decade, decade * 5 / 2} {
		if highest > 2*larger {
			step = larger
		}
	}
	ticks := []float64{0}
	for last := 0.0; last < highest; {
		last = step * float64(len(ticks))
		ticks = append(ticks, last)
	}
	return ticks
}

// logTicks returns 1, 3, 10, 30 and so on, such that the values are between the first
// and the last.
func logTicks(lowest, highest float64) []float64 {
	var ticks []float64
	for decade := math.Pow(10, math.Floor(math.Log10(lowest))); len(ticks) == 0 || ticks[len(ticks)-1] < highest; decade *= 10 {
		ticks = append(ticks, decade, 3*decade)
	}
	if ticks[1] <= lowest {
		ticks = ticks[1:]
	}
	if before := ticks[:len(ticks)-1]; len(before) > 1 && before[len(before)-1] >= highest {
		ticks = before
	}
	return ticks
}
