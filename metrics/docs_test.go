package metrics_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/partita-go/partita/metrics"
)

var documented = regexp.MustCompile("(?m)^- `(partita_[a-z_]+)(?:\\{([a-z_,]+)\\})?`: ([a-z]+)\\.\\s")

// TestDocsListEachMetric: with its labels and its type, and none that there is not.
func TestDocsListEachMetric(t *testing.T) {
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[string]string)
	for _, m := range documented.FindAllStringSubmatch(string(text), -1) {
		told[m[1]] = describe(strings.Split(m[2], ","), m[3])
	}
	if n := strings.Count(string(text), "\n- `partita_"); n != len(told) {
		t.Errorf("got %d metrics, want all %d items", len(told), n)
	}
	r := newRig(t, metrics.Options{})
	r.load()
	r.requests()
	there := make(map[string]string)
	for name, f := range r.gather().all {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		there[name] = describe(labels, strings.ToLower(dto.MetricType_name[int32(f.GetType())]))
	}
	for name := range maps.Keys(there) {
		if told[name] == "" {
			t.Errorf("docs/metrics.md does not list %s: %s", name, there[name])
		}
	}
	for name, what := range told {
		if there[name] != what {
			t.Errorf("%s: docs/metrics.md says %s, there is %q", name, what, there[name])
		}
	}
}

func describe(labels []string, kind string) string {
	slices.Sort(labels)
	return fmt.Sprint(kind, " by ", strings.Join(labels, ","))
}
