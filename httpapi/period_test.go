package httpapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

// A sequence that restarts says so wherever its numbers are shown; a business date decides the year.
func TestPeriods(t *testing.T) {
	r := newRig(t, Options{})
	year := time.Now().UTC().Year()
	number := func(year, n int) string {
		return fmt.Sprintf(`{"sequence":18,"period":"%d-01-01","number":"%d","printed":"L-%d/%03d"}`, year, n, year, n)
	}
	date := fmt.Sprintf("%d-12-31", year-1)
	const body = `{"kind": 3, "wanted": [{"sequence": 18, "count": 2}], "date": %q}`
	r.post(4, fmt.Sprintf(body, date)).timeless().is(http.StatusCreated, `{"workspace":"4","wlog_offset":"1","partition":0,"plog_offset":"1",`+
		`"registered_at":"TIME","numbers":[`+number(year-1, 1)+","+number(year-1, 2)+`],"repeated":false}`)
	r.post(4, `{"kind": 3, "wanted": [{"sequence": 18}]}`).timeless().is(http.StatusCreated, `{"workspace":"4","wlog_offset":"2","partition":0,`+
		`"plog_offset":"2","registered_at":"TIME","numbers":[`+number(year, 1)+`],"repeated":false}`)
	r.get("/v1/workspaces/4/events/1").timeless().is(http.StatusOK, `{"partition":0,"plog_offset":"1","workspace":"4","workspace_kind":3,`+
		`"wlog_offset":"1","registered_at":"TIME","date":"`+date+`","epoch":"1","numbers":[`+number(year-1, 1)+","+number(year-1, 2)+`],`+
		`"records":[],"body_base64":""}`)
	last := func(year, n int) string {
		return fmt.Sprintf(`{"sequence":18,"name":"Letter","period":"%d-01-01","last":"%d","largest":"9223372036854775807",`+
			`"nearly_used":false,"printed":"L-%d/%03d"}`, year, n, year, n)
	}
	r.get("/v1/workspaces/4/numbers").is(http.StatusOK, `{"workspace":"4","workspace_kind":3,"as_of_offset":"2","sequences":[`+
		`{"sequence":1,"name":"WLogOffset","last":"2","largest":"18446744073709551615","nearly_used":false},`+
		`{"sequence":2,"name":"CRecordID","last":"0","largest":"18446744073709551615","nearly_used":false},`+
		`{"sequence":3,"name":"OWRecordID","last":"0","largest":"322685000131071","nearly_used":false},`+
		last(year-1, 2)+","+last(year, 1)+`]}`)
	for _, wrong := range []string{fmt.Sprintf("%d-01-01", year+2), "2026-02-30", "2026-3-1", ""} {
		r.post(4, fmt.Sprintf(body, wrong)).problem(invalidEvent, "date")
	}
	r.post(4, `{"kind": 3, "wanted": [{"sequence": 18}], "records": [{"number_index": 0, "new": true}]}`).problem(invalidEvent, "records")
}

// An event that gives its workspace a zone says so, and so do the workspace's numbers.
func TestZone(t *testing.T) {
	r := newRig(t, Options{})
	r.post(4, `{"kind": 3, "zone": "Europe/Zurich"}`).timeless().is(http.StatusCreated, `{"workspace":"4","wlog_offset":"1","partition":0,`+
		`"plog_offset":"1","registered_at":"TIME","numbers":[],"repeated":false}`)
	r.get("/v1/workspaces/4/events/1").timeless().is(http.StatusOK, `{"partition":0,"plog_offset":"1","workspace":"4","workspace_kind":3,`+
		`"wlog_offset":"1","registered_at":"TIME","zone":"Europe/Zurich","epoch":"1","numbers":[],"records":[],"body_base64":""}`)
	var numbers struct {
		Zone string    `json:"zone"`
		Set  time.Time `json:"zone_set_at"`
	}
	r.get("/v1/workspaces/4/numbers").has(http.StatusOK).decode(&numbers)
	if numbers.Zone != "Europe/Zurich" || time.Since(numbers.Set).Abs() > time.Hour {
		t.Errorf("got %+v", numbers)
	}
	for _, wrong := range []string{`"Mars/Olympus_Mons"`, `"Local"`, `""`, `1`} {
		r.post(4, `{"kind": 3, "zone": `+wrong+`}`).problem(invalidEvent, "zone")
	}
	// Too often: nothing is written.
	for i := range 15 {
		r.post(4, fmt.Sprintf(`{"kind": 3, "zone": %q}`, []string{"Asia/Tokyo", "Europe/Zurich"}[i%2])).has(http.StatusCreated)
	}
	r.post(4, `{"kind": 3, "zone": "Europe/Zurich"}`).problem(invalidEvent, "zone")
	r.get("/v1/workspaces/4/events/17").has(http.StatusNotFound)
}
