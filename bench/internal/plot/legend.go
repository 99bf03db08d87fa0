package plot

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const legendGap = 8 // between the data and the legend

// newLegend returns a legend that stands right of the data.
func newLegend() plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left = true, true
	l.ThumbnailWidth, l.Padding = vg.Points(12), vg.Points(3)
	l.TextStyle.Color, l.TextStyle.Font = textColor, plain
	l.TextStyle.Font.Size = vg.Points(smallText)
	return l
}

// drawLegend draws a legend in the margin, right of where a picture is.
func drawLegend(l plot.Legend, framed draw.Canvas, margin vg.Length) {
	l.Draw(draw.Crop(framed, framed.Max.X-framed.Min.X+legendGap, margin, 0, 0))
}
