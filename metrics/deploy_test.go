package metrics_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/partita-go/partita/metrics"
)

// expression is one of PromQL, and where it stands.
type expression struct{ where, text string }

var ruleExpr = regexp.MustCompile(`(?m)^ *- alert: (\w+)\n +expr: '(.*)'$`)

// rules returns the expressions of the alerts.
func rules(t *testing.T) (all []expression) {
	t.Helper()
	text, err := os.ReadFile("../deploy/partita.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range ruleExpr.FindAllStringSubmatch(string(text), -1) {
		all = append(all, expression{m[1], m[2]})
	}
	if n := strings.Count(string(text), "expr:"); n != len(all) || n == 0 {
		t.Fatalf("got %d expressions, want all %d", len(all), n)
	}
	return all
}

// panels returns the expressions of the dashboard.
func panels(t *testing.T) (all []expression) {
	t.Helper()
	text, err := os.ReadFile("../deploy/partita.dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all = append(all, expression{p.Title, target.Expr})
		}
	}
	if n := strings.Count(string(text), `"expr":`); n != len(all) || n == 0 {
		t.Fatalf("got %d expressions, want all %d", len(all), n)
	}
	return all
}

var (
	// selector is a name, and what follows it in braces.
	selector = regexp.MustCompile(`([a-z_:][a-z0-9_:]*)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z_]+)(=~|!~|!=|=)"([^"]*)"`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring) \(([^)]*)\)`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
	// words are those of PromQL that the expressions use.
	words = []string{"sum", "rate", "increase", "max_over_time", "histogram_quantile", "and", "time"}
)

// check reports what an expression names that is not there: a metric, a label of it, or a value that no series has.
func (g gathered) check(e expression) {
	g.t.Helper()
	rest := ranges.ReplaceAllString(e.text, "")
	labels := map[string]bool{"le": true}
	groupings := grouping.FindAllStringSubmatch(rest, -1)
	found := 0
	for _, s := range selector.FindAllStringSubmatch(grouping.ReplaceAllString(rest, ""), -1) {
		if slices.Contains(words, s[1]) {
			continue
		}
		found++
		name := s[1]
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			if g.all[name] == nil {
				name = strings.TrimSuffix(name, suffix)
			}
		}
		if name != s[1] && g.all[name] != nil && g.all[name].Metric[0].Histogram == nil {
			g.t.Errorf("%s: %s is no histogram", e.where, name)
		}
		if len(g.find(name)) == 0 {
			g.t.Errorf("%s: there is no metric %q: %s", e.where, s[1], e.text)
			continue
		}
		g.checkMatchers(e, name, s[2])
		for _, l := range g.find(name)[0].GetLabel() {
			labels[l.GetName()] = true
		}
	}
	for _, by := range groupings {
		for label := range strings.SplitSeq(by[1], ", ") {
			if !labels[label] {
				g.t.Errorf("%s: no metric has the label %q: %s", e.where, label, e.text)
			}
		}
	}
	if found == 0 {
		g.t.Errorf("%s: no metric in %s", e.where, e.text)
	}
}

func (g gathered) checkMatchers(e expression, name, matchers string) {
	g.t.Helper()
	rest := matcher.ReplaceAllStringFunc(matchers, func(text string) string {
		m := matcher.FindStringSubmatch(text)
		values := make(map[string]bool)
		for _, series := range g.find(name) {
			for _, l := range series.GetLabel() {
				if l.GetName() == m[1] {
					values[l.GetValue()] = true
				}
			}
		}
		if len(values) == 0 || m[2] == "=" && !values[m[3]] {
			g.t.Errorf("%s: %s has no series with %s, but %q", e.where, name, text, slices.Sorted(maps.Keys(values)))
		}
		return ""
	})
	if strings.Trim(rest, ", ") != "" {
		g.t.Errorf("%s: what is %q in %s?", e.where, rest, e.text)
	}
}

// TestDeployNamesWhatThereIs: after a short load there is each metric that the alerts and the dashboard name, with each
// label.
func TestDeployNamesWhatThereIs(t *testing.T) {
	r := newRig(t, metrics.Options{})
	r.load()
	r.requests()
	r.check(r.registry.Register(collectors.NewGoCollector()))
	r.check(r.registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})))
	g := r.gather()
	for _, e := range slices.Concat(rules(t), panels(t)) {
		g.check(e)
	}
}

// TestRulesAreYAML: promtool is seldom installed. Prometheus starts with none of the rules if it cannot read one.
func TestRulesAreYAML(t *testing.T) {
	text, err := os.ReadFile("../deploy/partita.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := yaml.Parser().Unmarshal(text); err != nil {
		t.Error(err)
	}
}

// TestRulesWithPromtool: as Prometheus itself reads them, where it is installed.
func TestRulesWithPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", "../deploy/partita.rules.yml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
