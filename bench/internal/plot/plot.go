// Package plot draws the results of rows as an SVG picture.
package plot

import (
	"bytes"
	"fmt"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/partita-go/partita/bench/internal/report"
)

// The picture, in points.
const (
	width, height = 720, 600
	edge          = 4
	titleHeight   = 52
	upperHeight   = 240
	gutter        = 20
	narrowMargin  = 88  // for labels
	wideMargin    = 250 // for long ones
	panelTitle    = 22
)

// Write draws what was measured: events a second against partitions, workspaces and
// callers. Rows that were not run, or are not right, are left out.
func Write(w io.Writer, results []report.Result) error {
	f := figuresOf(results)
	svg := vgsvg.New(width+2*edge, height)
	all := draw.Crop(draw.New(svg), edge, -edge, 0, 0)
	title := vg.Point{X: edge, Y: height - 12}
	all.FillText(lettering(titleText, textColor, bold), title, "Durable appends a second")
	title.Y -= 18
	all.FillText(lettering(smallText, textColor, plain), title,
		"300-byte body, two records of 100 bytes, numbers without gaps; synced before the answer")

	const upper = height - titleHeight
	for _, part := range []struct {
		panel                    panel
		left, right, bottom, top vg.Length
		margin                   vg.Length
	}{
		{partitionsPanel, 0, width/2 - gutter/2, upper - upperHeight, upper, narrowMargin},
		{workspacesPanel, width/2 + gutter/2, width, upper - upperHeight, upper, narrowMargin},
		{callersPanel, 0, width, edge, upper - upperHeight - gutter, wideMargin},
	} {
		area := draw.Crop(all, part.left, part.right-width, part.bottom, part.top-height)
		if err := f.draw(part.panel, area, part.margin); err != nil {
			return fmt.Errorf("%s: %w", part.panel.x, err)
		}
	}
	return writeSVG(w, svg)
}

func writeSVG(w io.Writer, svg *vgsvg.Canvas) error {
	var picture bytes.Buffer
	if _, err := svg.WriteTo(&picture); err != nil {
		return err
	}
	_, err := w.Write(bytes.ReplaceAll(picture.Bytes(), []byte(embeddedFamily), []byte(families)))
	return err
}

// The letters are measured by one font; where that is not installed those of the same
// width are as good.
const (
	embeddedFamily = "font-family:Liberation Sans;"
	families       = "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"
)

// draw draws a panel.
func (f figures) draw(p panel, area draw.Canvas, margin vg.Length) error {
	lowest, highest, ok := f.extent(p)
	if !ok {
		return fmt.Errorf("got no row of partita that is right, want %q or its neighbours", p.series[len(p.series)-1].lines[0].row)
	}
	area.FillText(lettering(panelText, textColor, bold), vg.Point{X: area.Min.X, Y: area.Max.Y - 6}, p.title)
	indent := lettering(panelText, textColor, bold).Width(p.title) + 8
	area.FillText(lettering(smallText, textColor, plain), vg.Point{X: area.Min.X + indent, Y: area.Max.Y - 7}, p.subtitle)

	picture, legend := axes(p, lowest, highest), newLegend()
	for i, s := range p.series {
		points := f.points(s)
		if len(points) == 0 {
			continue
		}
		thumbnails, err := add(picture, p, i, points)
		if err != nil {
			return err
		}
		legend.Add(s.name+" "+rounded(points[len(points)-1].Y), thumbnails...)
	}
	framed := draw.Crop(area, 0, -margin, 0, -panelTitle)
	picture.Draw(framed)
	drawLegend(legend, framed, margin)
	return nil
}

// add adds the ith series to a panel, and returns how it looks.
func add(picture *plot.Plot, p panel, i int, points plotter.XYs) ([]plot.Thumbnailer, error) {
	s, path := p.series[i], points
	if s.kind == reference {
		path = plotter.XYs{{X: p.ticks[0], Y: points[0].Y}, {X: p.ticks[len(p.ticks)-1], Y: points[0].Y}}
	}
	line, err := plotter.NewLine(path)
	if err != nil {
		return nil, err
	}
	line.LineStyle = s.kind.style()
	picture.Add(line)
	if s.kind == reference {
		return []plot.Thumbnailer{line}, nil
	}
	scatter, err := plotter.NewScatter(points)
	if err != nil {
		return nil, err
	}
	scatter.GlyphStyle = s.kind.glyph()
	if s.kind == peer { // its shape alone tells it from the others
		scatter.Shape = plotutil.Shape(i)
	}
	picture.Add(scatter)
	return []plot.Thumbnailer{line, scatter}, nil
}
