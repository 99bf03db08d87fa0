package plot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// soakSample is what a soak has seen at one moment: a line of what it wrote.
type soakSample struct {
	Seconds float64 `json:"seconds"`
	// Rest says that everything was closed.
	Rest         bool        `json:"rest"`
	Store        int         `json:"store"`
	Events       float64     `json:"events_per_second"`
	Appends      soakLatency `json:"appends"`
	Transactions soakLatency `json:"transactions"`
	Live         float64     `json:"heap_live"`
	Anonymous    float64     `json:"resident_anonymous"`
	Goroutines   float64     `json:"goroutines"`
}

type soakLatency struct {
	Count float64 `json:"count"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p999_us"`
}

// curve is a figure over time. Where a sample does not have it, it is interrupted.
type curve struct {
	name string
	kind kind
	of   func(*soakSample) (y float64, ok bool)
	// dots says that there is no line.
	dots bool
}

// strip is one of the pictures, all of which have the same time axis.
type strip struct {
	title, subtitle string
	unit            string
	logY            bool
	curves          []curve
}

func underLoad(of func(*soakSample) float64) func(*soakSample) (float64, bool) {
	return func(s *soakSample) (float64, bool) { return of(s), !s.Rest }
}

func atRest(of func(*soakSample) float64) func(*soakSample) (float64, bool) {
	return func(s *soakSample) (float64, bool) { return of(s), s.Rest }
}

// percentiles are curves of latencies in milliseconds.
func percentiles(of func(*soakSample) *soakLatency) []curve {
	in := func(percentile func(*soakLatency) float64) func(*soakSample) (float64, bool) {
		return func(s *soakSample) (float64, bool) {
			l := of(s)
			return percentile(l) / 1e3, l.Count > 0
		}
	}
	return []curve{
		{name: "p50", kind: own, of: in(func(l *soakLatency) float64 { return l.P50 })},
		{name: "p99", kind: limit, of: in(func(l *soakLatency) float64 { return l.P99 })},
		{name: "p99.9", kind: peer, of: in(func(l *soakLatency) float64 { return l.P999 })},
	}
}

func live(s *soakSample) float64       { return s.Live / (1 << 20) }
func anonymous(s *soakSample) float64  { return s.Anonymous / (1 << 20) }
func goroutines(s *soakSample) float64 { return s.Goroutines }

var strips = []strip{
	{title: "Latency of appends", unit: "ms", logY: true, curves: percentiles(func(s *soakSample) *soakLatency { return &s.Appends })},
	{title: "Latency of transactions", unit: "ms", logY: true, curves: percentiles(func(s *soakSample) *soakLatency { return &s.Transactions })},
	{title: "Throughput", subtitle: "acknowledged events", unit: "events a second", curves: []curve{
		{name: "events", kind: own, of: underLoad(func(s *soakSample) float64 { return s.Events })},
	}},
	{title: "Memory", subtitle: "heap after a garbage collection; anonymous memory of the process", unit: "MiB", curves: []curve{
		{name: "heap", kind: own, of: underLoad(live)},
		{name: "at rest", kind: limit, of: atRest(live), dots: true},
		{name: "anonymous", kind: peer, of: underLoad(anonymous)},
	}},
	{title: "Goroutines", unit: "goroutines", curves: []curve{
		{name: "under load", kind: own, of: underLoad(goroutines)},
		{name: "at rest", kind: limit, of: atRest(goroutines), dots: true},
	}},
}

// The picture of a soak, in points.
const (
	stripHeight = 150
	soakHeight  = titleHeight + 5*stripHeight
	soakMargin  = 104 // for labels
)

// WriteSoak draws the samples of a soak, one below the other over the same time.
func WriteSoak(w io.Writer, r io.Reader) error {
	samples, err := readSamples(r)
	if err != nil {
		return err
	}
	svg := vgsvg.New(width+2*edge, soakHeight)
	all := draw.Crop(draw.New(svg), edge, -edge, 0, 0)
	title := vg.Point{X: edge, Y: soakHeight - 12}
	all.FillText(lettering(titleText, textColor, bold), title, "A soak: full load, with undeployments, restarts and faults")
	title.Y -= 18
	all.FillText(lettering(smallText, textColor, plain), title, "each line is a store of its own, which is checked in the gap behind it; labels have the median")
	pictures, legends := make([][]*plot.Plot, len(strips)), make([]plot.Legend, len(strips))
	for i := range strips {
		picture, legend, err := strips[i].prepare(samples)
		if err != nil {
			return fmt.Errorf("%s: %w", strips[i].title, err)
		}
		pictures[i], legends[i] = []*plot.Plot{picture}, legend
	}
	pictures[len(pictures)-1][0].X.Label.Text = "minutes"
	tiles := draw.Tiles{Rows: len(strips), Cols: 1, PadTop: titleHeight + panelTitle, PadY: panelTitle, PadRight: soakMargin}
	for i, row := range plot.Align(pictures, tiles, all) {
		strips[i].drawTitle(all, row[0].Max.Y+panelTitle-6)
		pictures[i][0].Draw(row[0])
		drawLegend(legends[i], row[0], soakMargin)
	}
	return writeSVG(w, svg)
}

func (s *strip) drawTitle(all draw.Canvas, y vg.Length) {
	at := vg.Point{X: all.Min.X, Y: y}
	all.FillText(lettering(panelText, textColor, bold), at, s.title)
	at.X += lettering(panelText, textColor, bold).Width(s.title) + 8
	all.FillText(lettering(smallText, textColor, plain), at, s.subtitle)
}

func readSamples(r io.Reader) ([]soakSample, error) {
	var samples []soakSample
	for d := json.NewDecoder(r); ; {
		var s soakSample
		err := d.Decode(&s)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("sample %d: %w", len(samples)+1, err)
		}
		samples = append(samples, s)
	}
	if len(samples) == 0 {
		return nil, errors.New("got no samples, want those that a soak wrote")
	}
	return samples, nil
}

// prepare makes the picture of a strip.
func (s *strip) prepare(samples []soakSample) (*plot.Plot, plot.Legend, error) {
	legend := newLegend()
	picture, err := s.axes(samples)
	if err != nil {
		return nil, legend, err
	}
	for _, c := range s.curves {
		values, thumbnail, err := c.add(picture, samples)
		if err != nil {
			return nil, legend, err
		}
		if len(values) > 0 {
			slices.Sort(values)
			legend.Add(c.name+" "+short(values[len(values)/2]), thumbnail)
		}
	}
	return picture, legend, nil
}

// axes returns an empty picture that has room for all values.
func (s *strip) axes(samples []soakSample) (*plot.Plot, error) {
	lowest, highest := math.Inf(1), math.Inf(-1)
	for i := range samples {
		for _, c := range s.curves {
			if y, ok := c.of(&samples[i]); ok {
				lowest, highest = min(lowest, y), max(highest, y)
			}
		}
	}
	if math.IsInf(lowest, 0) || highest <= 0 {
		return nil, errors.New("got no value")
	}
	picture := frame("", s.unit)
	minutes := samples[len(samples)-1].Seconds / 60
	picture.X.Min, picture.X.Max, picture.X.Tick.Marker = 0, minutes, shortLabels(linearTicks(minutes))
	ticks := linearTicks(highest)
	if s.logY {
		ticks = logTicks(max(lowest, highest/1e6), highest)
		picture.Y.Scale = plot.LogScale{}
	}
	picture.Y.Min, picture.Y.Max, picture.Y.Tick.Marker = ticks[0], ticks[len(ticks)-1], shortLabels(ticks)
	return picture, nil
}

// add draws a curve and returns its values, and how it looks.
func (c *curve) add(picture *plot.Plot, samples []soakSample) (values []float64, look plot.Thumbnailer, err error) {
	var pieces []plotter.XYs
	store := -1
	for i := range samples {
		s := &samples[i]
		y, ok := c.of(s)
		if !ok {
			continue
		}
		values = append(values, y)
		if s.Store != store {
			pieces = append(pieces, nil)
			store = s.Store
		}
		last := &pieces[len(pieces)-1]
		*last = append(*last, plotter.XY{X: s.Seconds / 60, Y: max(y, picture.Y.Min)})
	}
	for _, piece := range pieces {
		if look, err = c.piece(picture, piece); err != nil {
			return nil, nil, err
		}
	}
	return values, look, nil
}

func (c *curve) piece(picture *plot.Plot, points plotter.XYs) (plot.Thumbnailer, error) {
	if c.dots {
		scatter, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: c.kind.color(), Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
		picture.Add(scatter)
		return scatter, nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return nil, err
	}
	line.LineStyle = draw.LineStyle{Color: c.kind.color(), Width: vg.Points(1)}
	picture.Add(line)
	return line, nil
}

// shortLabels returns ticks whose values may be fractions.
func shortLabels(values []float64) plot.ConstantTicks {
	ticks := make(plot.ConstantTicks, len(values))
	for i, v := range values {
		ticks[i] = plot.Tick{Value: v, Label: short(v)}
	}
	return ticks
}

// short writes a number with no more digits than say something.
func short(n float64) string {
	if n >= 100 {
		return rounded(n)
	}
	if n < 1e-9 {
		return "0"
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-1)
	return strconv.FormatFloat(math.Round(n/unit)*unit, 'g', 2, 64)
}
