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
	drawn := make([]drawing, len(strips))
	indent := vg.Length(0)
	for i := range strips {
		s := &strips[i]
		top := vg.Length(soakHeight - titleHeight - i*stripHeight)
		if drawn[i], err = s.prepare(draw.Crop(all, 0, 0, top-stripHeight, top-soakHeight), samples); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		indent = max(indent, drawn[i].indent())
	}
	drawn[len(drawn)-1].picture.X.Label.Text = "minutes"
	for i := range drawn {
		drawn[i].draw(indent)
	}
	return writeSVG(w, svg)
}

// drawing is a strip whose place is known.
type drawing struct {
	strip   *strip
	area    draw.Canvas
	picture *plot.Plot
	// labels are not placed yet: their heights are values.
	labels []label
}

// framed is where the picture goes, without the labels beside it.
func (d *drawing) framed() draw.Canvas { return draw.Crop(d.area, 0, -soakMargin, 0, -panelTitle) }

// indent is how far the data is from the left.
func (d *drawing) indent() vg.Length {
	framed := d.framed()
	return d.picture.DataCanvas(framed).Min.X - framed.Min.X
}

// draw draws the strip with its data so far from the left.
func (d *drawing) draw(indent vg.Length) {
	at := vg.Point{X: d.area.Min.X, Y: d.area.Max.Y - 6}
	d.area.FillText(lettering(panelText, textColor, bold), at, d.strip.title)
	at.X += lettering(panelText, textColor, bold).Width(d.strip.title) + 8
	d.area.FillText(lettering(smallText, textColor, plain), at, d.strip.subtitle)
	framed := draw.Crop(d.framed(), indent-d.indent(), 0, 0, 0)
	d.picture.Draw(framed)
	data := d.picture.DataCanvas(framed)
	_, toY := d.picture.Transforms(&data)
	for i := range d.labels {
		d.labels[i].y = toY(float64(d.labels[i].y))
	}
	drawLabels(d.area, data, d.labels)
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
func (s *strip) prepare(area draw.Canvas, samples []soakSample) (drawing, error) {
	picture, err := s.axes(samples)
	if err != nil {
		return drawing{}, err
	}
	d := drawing{strip: s, area: area, picture: picture}
	for _, c := range s.curves {
		values, err := c.add(picture, samples)
		if err != nil {
			return drawing{}, err
		}
		if len(values) > 0 {
			slices.Sort(values)
			middle := values[len(values)/2]
			d.labels = append(d.labels, label{text: c.name + " " + short(middle), kind: c.kind, y: vg.Length(middle)})
		}
	}
	return d, nil
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

// add draws a curve and returns its values.
func (c *curve) add(picture *plot.Plot, samples []soakSample) (values []float64, err error) {
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
		if err := c.piece(picture, piece); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (c *curve) piece(picture *plot.Plot, points plotter.XYs) error {
	if c.dots {
		scatter, err := plotter.NewScatter(points)
		if err != nil {
			return err
		}
		scatter.GlyphStyle = draw.GlyphStyle{Color: c.kind.color(), Radius: vg.Points(2), Shape: draw.CircleGlyph{}}
		picture.Add(scatter)
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: c.kind.color(), Width: vg.Points(1)}
	picture.Add(line)
	return nil
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
