package plot

import (
	"image/color"

	xfont "golang.org/x/image/font"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The picture has no background of its own: these can be read on white and on black.
var (
	textColor  = color.NRGBA{R: 0x6e, G: 0x77, B: 0x81, A: 0xff}
	ownColor   = color.NRGBA{R: 0x2f, G: 0x81, B: 0xf7, A: 0xff}
	limitColor = color.NRGBA{R: 0xc2, G: 0x6a, B: 0x0a, A: 0xff}
	peerColor  = color.NRGBA{R: 0x8b, G: 0x5c, B: 0xf6, A: 0xff}
	gridColor  = color.NRGBA{R: 0x80, G: 0x80, B: 0x80, A: 0x38}
)

func (k kind) color() color.NRGBA {
	switch k {
	case own, ownDashed:
		return ownColor
	case peer:
		return peerColor
	case limit, reference:
	}
	return limitColor
}

// style is that of the series' line.
func (k kind) style() draw.LineStyle {
	s := draw.LineStyle{Color: k.color(), Width: vg.Points(1.75)}
	switch k {
	case ownDashed:
		s.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	case reference, peer:
		s.Width, s.Dashes = vg.Points(1), []vg.Length{vg.Points(1.5), vg.Points(2.5)}
	case own, limit:
	}
	return s
}

// glyph is that of the series' points.
func (k kind) glyph() draw.GlyphStyle {
	g := draw.GlyphStyle{Color: k.color(), Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	switch k {
	case ownDashed:
		g.Shape = draw.RingGlyph{}
	case own, limit, reference, peer:
	}
	return g
}

const (
	smallText = 9
	panelText = 12
	titleText = 15
)

// lettering is text that begins where it is put.
func lettering(size float64, c color.Color, weight font.Font) text.Style {
	weight.Size = vg.Points(size)
	return text.Style{Color: c, Font: weight, XAlign: draw.XLeft, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
}

var (
	plain = font.Font{Typeface: "Liberation", Variant: "Sans"}
	bold  = font.Font{Typeface: "Liberation", Variant: "Sans", Weight: xfont.WeightBold}
)
