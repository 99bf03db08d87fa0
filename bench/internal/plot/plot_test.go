package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/bench/internal/report"
)

// allRows returns a result for each row that is drawn, a thousand events a second more
// for each.
func allRows() []report.Result {
	var results []report.Result
	seen := make(map[string]bool)
	for _, p := range []panel{partitionsPanel, workspacesPanel, callersPanel} {
		for _, s := range p.series {
			for _, l := range s.lines {
				if !seen[l.row] {
					results = append(results, report.Result{Row: l.row, Events: 1, Check: "all there", EventsPerSecond: float64(1000 * (len(seen) + 3))})
				}
				seen[l.row] = true
			}
		}
	}
	return results
}

func pictureOf(t *testing.T, results []report.Result) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, results); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// texts returns the texts of a picture, which must be well-formed.
func texts(t *testing.T, picture string) []string {
	t.Helper()
	var found []string
	inText := false
	for d := xml.NewDecoder(strings.NewReader(picture)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.CharData:
			if inText {
				found = append(found, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

func TestPicture(t *testing.T) {
	results := allRows()
	picture := pictureOf(t, results)
	found := texts(t, picture)
	f := figuresOf(results)
	for _, p := range []panel{partitionsPanel, workspacesPanel, callersPanel} {
		for _, want := range []string{p.title, p.subtitle, p.x, "events a second"} {
			if !slices.Contains(found, want) {
				t.Errorf("got no %q", want)
			}
		}
		for _, s := range p.series {
			want := s.name + " " + rounded(f[s.lines[len(s.lines)-1].row])
			if !slices.Contains(found, want) {
				t.Errorf("got no %q", want)
			}
		}
		for _, tick := range p.ticks {
			if !slices.Contains(found, thousands(tick)) {
				t.Errorf("got no tick %v", tick)
			}
		}
	}
	if strings.Contains(picture, embeddedFamily) {
		t.Errorf("got %q without an alternative", embeddedFamily)
	}
	slices.Reverse(results)
	if pictureOf(t, results) != picture {
		t.Error("got another picture of the same results")
	}
}

func TestRowsThatAreMissingAreLeftOut(t *testing.T) {
	results := allRows()
	sqlite := slices.IndexFunc(results, func(r report.Result) bool { return r.Row == "sqlite" })
	nats := slices.IndexFunc(results, func(r report.Result) bool { return r.Row == "nats-jetstream" })
	results[nats].Failed = "a number is lost"
	found := strings.Join(texts(t, pictureOf(t, slices.Delete(results, sqlite, sqlite+1))), "\n")
	if strings.Contains(found, "SQLite") || strings.Contains(found, "NATS") || !strings.Contains(found, "PostgreSQL") {
		t.Errorf("got\n%s", found)
	}
}

func TestPanelWithoutPartita(t *testing.T) {
	results := slices.DeleteFunc(allRows(), func(r report.Result) bool { return strings.HasPrefix(r.Row, "partita/partitions") })
	if err := Write(io.Discard, results); err == nil || !strings.Contains(err.Error(), "partita/partitions=1") {
		t.Errorf("got %v, want an error that names a row", err)
	}
}

// luminance is that of WCAG 2.
func luminance(r, g, b uint8) float64 {
	sum := 0.0
	for _, c := range []struct {
		value  uint8
		weight float64
	}{{r, 0.2126}, {g, 0.7152}, {b, 0.0722}} {
		v := float64(c.value) / 255
		if v <= 0.03928 {
			sum += c.weight * v / 12.92
			continue
		}
		sum += c.weight * math.Pow((v+0.055)/1.055, 2.4)
	}
	return sum
}

// A contrast of 4.5 on both is not possible; 3 is what WCAG asks of pictures and of
// large letters.
func TestColorsCanBeReadOnLightAndDark(t *testing.T) {
	light, dark := luminance(0xff, 0xff, 0xff), luminance(0x0d, 0x11, 0x17)
	text := luminance(textColor.R, textColor.G, textColor.B)
	if onLight, onDark := (light+0.05)/(text+0.05), (text+0.05)/(dark+0.05); onLight < 4 || onDark < 4 {
		t.Errorf("text: got contrasts %.1f and %.1f, want 4", onLight, onDark)
	}
	for _, k := range []kind{own, ownDashed, limit, reference, peer} {
		c := k.color()
		l := luminance(c.R, c.G, c.B)
		if onLight, onDark := (light+0.05)/(l+0.05), (l+0.05)/(dark+0.05); onLight < 3 || onDark < 3 {
			t.Errorf("kind %d: got contrasts %.1f and %.1f, want 3", k, onLight, onDark)
		}
	}
}
