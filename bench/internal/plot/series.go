package plot

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/plot/plotter"

	"github.com/partita-go/partita/bench/internal/report"
)

// series are points that belong together: a line, or what is told of one number of
// callers.
type series struct {
	name  string
	kind  kind
	lines []line
}

// line is a row, and where it stands on the x axis.
type line struct {
	x   float64
	row string
}

// kind is how a series looks.
type kind int

const (
	own       kind = iota // a line of partita
	ownDashed             // another one
	limit                 // a line of the limit
	reference             // a level of the limit: the same for all x
	peer                  // a point of another store
)

// panel is one of the pictures.
type panel struct {
	title, subtitle string
	x               string // label
	ticks           []float64
	logY            bool
	series          []series
}

// across makes a series of partita's rows that differ by a number.
func across(name string, k kind, format string, numbers ...float64) series {
	s := series{name: name, kind: k}
	for _, n := range numbers {
		s.lines = append(s.lines, line{x: n, row: fmt.Sprintf(format, int(n))})
	}
	return s
}

func single(name string, k kind, x float64, row string) series {
	return series{name: name, kind: k, lines: []line{{x: x, row: row}}}
}

const (
	manyCallers = 256
	peerCallers = 64
	limitRow    = "limit/callers=256"
	limitName   = "limit"
)

var (
	partitionsPanel = panel{
		title: "Partitions", subtitle: "256 callers, 10,000 workspaces", x: "partitions",
		ticks: []float64{1, 10, 100, 1000},
		series: []series{
			single(limitName, reference, 0, limitRow),
			across("partita", own, "partita/partitions=%d", 1, 10, 16, 100, 1000),
		},
	}
	workspacesPanel = panel{
		title: "Workspaces", subtitle: "256 callers, 16 partitions", x: "workspaces",
		ticks: []float64{100, 1000, 10_000, 100_000, 1_000_000},
		series: []series{
			single(limitName, reference, 0, limitRow),
			across("Zipf", own, "partita/workspaces=%d,zipf", 100, 10_000, 1_000_000),
			across("uniform", ownDashed, "partita/workspaces=%d,uniform", 100, 10_000, 1_000_000),
		},
	}
	callersPanel = panel{
		title: "Callers", subtitle: "16 partitions, 10,000 workspaces; other stores with 64 callers", x: "callers",
		ticks: []float64{1, 8, peerCallers, manyCallers}, logY: true,
		series: []series{
			across("limit: one bbolt bucket, nothing else", limit, "limit/callers=%d", 1, 8, peerCallers, manyCallers),
			{name: "partita", kind: own, lines: []line{
				{1, "partita/callers=1"}, {8, "partita/callers=8"}, {peerCallers, "partita/callers=64"}, {manyCallers, "partita"},
			}},
			single("PostgreSQL, a counter row per workspace", peer, peerCallers, "postgres-counter"),
			single("PostgreSQL, numbers at commit", peer, peerCallers, "postgres-trigger"),
			single("NATS JetStream, synced always", peer, peerCallers, "nats-jetstream"),
			single("SQLite", peer, peerCallers, "sqlite"),
		},
	}
)

// figures are the events a second of the rows that are right.
type figures map[string]float64

func figuresOf(results []report.Result) figures {
	f := make(figures)
	rows := report.Summarize(results)
	for i := range rows {
		if rows[i].Right() {
			f[rows[i].Row] = rows[i].EventsPerSecond
		}
	}
	return f
}

// points are those that were measured.
func (f figures) points(s series) plotter.XYs {
	var points plotter.XYs
	for _, l := range s.lines {
		if y, ok := f[l.row]; ok {
			points = append(points, plotter.XY{X: l.x, Y: y})
		}
	}
	return points
}

// extent is the range of what a panel shows, ok false if nothing of partita.
func (f figures) extent(p panel) (lowest, highest float64, ok bool) {
	lowest, highest = math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		for _, point := range f.points(s) {
			lowest, highest = min(lowest, point.Y), max(highest, point.Y)
			ok = ok || s.kind == own
		}
	}
	return lowest, highest, ok
}

// thousands writes a whole number with commas.
func thousands(n float64) string {
	digits := fmt.Sprintf("%.0f", n)
	var groups []string
	for ; len(digits) > 3; digits = digits[:len(digits)-3] {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
	}
	return strings.Join(append([]string{digits}, groups...), ",")
}

// rounded writes a number with three digits that say something.
func rounded(n float64) string {
	unit := math.Pow(10, max(0, math.Floor(math.Log10(n))-2))
	return thousands(math.Round(n/unit) * unit)
}
