package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
)

// TestSequenceByName: wherever a request names a sequence it may be by its name in the kind of the workspace, and that
// does what its id does.
func TestSequenceByName(t *testing.T) {
	r := newRig(t, Options{})
	const body = `{"kind": "shop", "brought": [{"sequence": SEQ, "number": "3"}], "wanted": [{"sequence": SEQ}], "moves": [{"sequence": SEQ, "number": "9"}],
		"records": [{"sequence": SEQ, "number": "3", "new": true, "data": "brought"}, {"number_index": 1, "new": true}]}`
	named := strings.ReplaceAll(body, "SEQ", `"Invoice"`)
	check(t, r.contract.valid(pointer{"components", "schemas", "Append"}, []byte(named)))
	want := r.post(42, strings.ReplaceAll(body, "SEQ", "16")).timeless().has(http.StatusCreated).body
	byName := r.post(46, named).timeless().has(http.StatusCreated).body
	if !strings.Contains(want, `"numbers":[{"sequence":16,"number":"3"},{"sequence":16,"number":"4"}]`) || byName != strings.NewReplacer(`"workspace":"42"`, `"workspace":"46"`, `"plog_offset":"1"`, `"plog_offset":"2"`).Replace(want) {
		t.Errorf("got %s, want %s", byName, want)
	}
	// A new record of a kind's own sequence.
	r.post(46, `{"kind": "shop", "wanted": [{"sequence": "CRecordID"}], "records": [{"number_index": 0, "new": true}]}`).has(http.StatusCreated)
	for _, path := range []string{"SEQ/3", "SEQ", "SEQ?from=4&limit=1"} {
		path = "/v1/workspaces/46/records/" + path
		r.get(strings.Replace(path, "SEQ", "Invoice", 1)).is(http.StatusOK, r.get(strings.Replace(path, "SEQ", "16", 1)).has(http.StatusOK).body)
	}
	if got := r.get("/v1/workspaces/46/records/Invoice?limit=1").has(http.StatusOK).body; !strings.Contains(got, `"next":"/v1/workspaces/46/records/Invoice?from=4&limit=1"`) {
		t.Errorf("got %s", got)
	}
}

// TestSequenceByNameRefused: a name that the kind of the workspace does not have, or has twice, is refused where it stands.
func TestSequenceByNameRefused(t *testing.T) {
	r := newRig(t, Options{})
	r.post(42, `{"kind": "shop"}`).has(http.StatusCreated)
	for name, detail := range map[string]string{
		`"invoice"`: `no sequence \"invoice\"`, `"Letter"`: `no sequence \"Letter\"`, `"16"`: `no sequence \"16\"`, `""`: `no sequence \"\"`,
		`"WLogOffset"`: `no sequence \"WLogOffset\"`, `1.5`: "a number from 1 to 65535, or a name", `null`: "a number from 1 to 65535, or a name",
	} {
		for _, member := range []string{"wanted", "brought", "moves", "records"} {
			a := r.post(42, `{"kind": "shop", "`+member+`": [{"sequence": `+name+`, "number": "1"}]}`)
			if a.problem(invalidEvent, member+"[0].sequence"); !strings.Contains(a.body, detail) {
				t.Errorf("%s: got %s, want %q in it", name, a.body, detail)
			}
		}
	}
	for path, field := range map[string]string{
		"42/records/invoice": "sequence", "42/records/invoice/1": "sequence", "42/records/Letter": "sequence", "43/records/Invoice": "wsid", "43/records/Invoice/1": "wsid",
		"42/records/Invoice/1": "number",
	} {
		r.get("/v1/workspaces/"+path).problem(notFound, field)
	}
	// Stores that were made before names were checked.
	kinds := slices.Clone(r.api.descriptor.Kinds)
	kinds[0].Sequences = append(slices.Clone(kinds[0].Sequences), messages.Sequence{ID: 20, Name: "Invoice", Initial: 1})
	r.api.descriptor.Kinds = kinds
	if a := r.post(42, `{"kind": "shop", "wanted": [{"sequence": "Invoice"}]}`).problem(invalidEvent, "wanted[0].sequence"); !strings.Contains(a.body, "several sequences") {
		t.Errorf("got %s", a.body)
	}
	r.get("/v1/workspaces/42/records/Invoice").problem(malformed, "sequence")
}
