package rows

import "testing"

func TestNamesAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for _, spec := range All() {
		if seen[spec.Name] || spec.Name == "" || spec.Callers < 1 || spec.New == nil {
			t.Errorf("got %+v, want a name of its own, callers, and New", spec)
		}
		seen[spec.Name] = true
	}
}
