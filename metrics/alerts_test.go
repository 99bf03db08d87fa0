package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// alerting is a metric of the documents with what is to be alerted by.
	alerting = regexp.MustCompile("(?s)^`(partita_[a-z_]+).*\\*\\*Alert:\\*\\*(.*)$")
	// alertValue is a value of a label in it.
	alertValue = regexp.MustCompile("`([a-z-]+)`")
)

// alertsTold returns the values that the documents want an alert by, by metric.
func alertsTold(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for item := range strings.SplitSeq(string(text), "\n- ") {
		item, _, _ = strings.Cut(item, "\n\n")
		m := alerting.FindStringSubmatch(item)
		if m == nil {
			continue
		}
		all[m[1]] = nil
		for _, v := range alertValue.FindAllStringSubmatch(m[2], -1) {
			all[m[1]] = append(all[m[1]], v[1])
		}
	}
	if n := strings.Count(string(text), "**Alert:**"); n != len(all) || n == 0 {
		t.Fatalf("got %d metrics with an alert, want all %d", len(all), n)
	}
	return all
}

// metricsOf returns what an expression names.
func metricsOf(e expression) (all []string) {
	for _, s := range selector.FindAllStringSubmatch(e.text, -1) {
		if name := strings.TrimSuffix(s[1], "_bucket"); strings.HasPrefix(name, "partita_") {
			all = append(all, name)
		}
	}
	return all
}

// TestAlertsAreTold: there is a rule for each metric of which the documents say so, with each value that they name, of all
// groups that have it; and the documents say so of what each rule is about, which it names first.
func TestAlertsAreTold(t *testing.T) {
	told, of := alertsTold(t), make(map[string][]string)
	for _, r := range rules(t) {
		named := metricsOf(r)
		if len(named) == 0 {
			t.Fatalf("%s: no metric in %s", r.where, r.text)
		}
		if _, ok := told[named[0]]; !ok {
			t.Errorf("%s: docs/metrics.md does not say **Alert** of %s", r.where, named[0])
		}
		of[named[0]] = append(of[named[0]], r.text)
	}
	for metric, values := range told {
		if len(of[metric]) == 0 {
			t.Errorf("%s: docs/metrics.md wants an alert, and there is no rule", metric)
		}
		for _, value := range values {
			if !slices.ContainsFunc(of[metric], regexp.MustCompile(`["|]`+value+`["|]`).MatchString) {
				t.Errorf("%s: docs/metrics.md wants an alert by %s, and no rule has that: %q", metric, value, of[metric])
			}
		}
	}
	for _, state := range []string{"failed", "alarming"} {
		others := `actor_group!="partition",status="` + state + `"`
		if !slices.ContainsFunc(of["partita_active_actors"], func(r string) bool { return strings.Contains(r, others) }) {
			t.Errorf("no rule is about command processors and lanes that are %s", state)
		}
	}
}
