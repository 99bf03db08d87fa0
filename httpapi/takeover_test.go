package httpapi

import (
	"net/http"
	"testing"

	"github.com/partita-go/partita/partition"
)

// What is taken over from an old system is in the events that are read; what would go back is refused, and says from
// where.
func TestTakeOver(t *testing.T) {
	r := newRig(t, Options{}, func(a *partition.Application) { a.Kinds[2].Sequences[0].Largest = 0 })
	const appended = `{"workspace":"4","wlog_offset":"1","partition":0,"plog_offset":"1","registered_at":"TIME","numbers":[`
	const brought = `{"sequence":18,"period":"2025-01-01","number":"7","printed":"L-2025/007"}`
	const given = `{"sequence":18,"period":"2025-01-01","number":"8","printed":"L-2025/008"}`
	r.post(4, `{"kind": 3, "date": "2025-03-01", "brought": [{"sequence": 18, "number": "7"}], "wanted": [{"sequence": 18}],
		"moves": [{"sequence": 2, "number": "322685000131080"}, {"sequence": 18, "period": "2025-01-01", "number": "20"}],
		"records": []}`).timeless().is(http.StatusCreated, appended+brought+","+given+`],"repeated":false}`)
	r.get("/v1/workspaces/4/events/1").timeless().is(http.StatusOK, `{"partition":0,"plog_offset":"1","workspace":"4","workspace_kind":3,`+
		`"wlog_offset":"1","registered_at":"TIME","date":"2025-03-01","epoch":"1","numbers":[`+brought+","+given+`],"brought":[`+brought+`],`+
		`"moves":[{"sequence":2,"number":"322685000131080"},{"sequence":18,"period":"2025-01-01","number":"20","printed":"L-2025/020"}],`+
		`"records":[],"body_base64":""}`)
	r.post(4, `{"kind": 3, "moves": [{"sequence": 18, "period": "2025-01-01", "number": "20"}]}`).is(http.StatusConflict,
		`{"type":"`+problemBase+`sequence-backward","title":"The sequence would not go forward","status":409,`+
			`"detail":"sequence would not go forward: workspace 4, sequence 18 in 2025-01-01 \"Letter\": got 20, want more than 20","error":"messages.ErrBackward",`+
			`"sequence":18,"name":"Letter","period":"2025-01-01","last_number":"20"}`)
	r.post(4, `{"kind": 3, "brought": [{"sequence": 18, "period": "2024-01-01", "number": "0"}]}`).problem(backward, "")
	for body, field := range map[string]string{
		`"moves": [{"sequence": 18, "number": "21"}]`:                                                "moves[0].period",
		`"moves": [{"sequence": 18, "period": "2025-03-01", "number": "21"}]`:                        "moves[0].period",
		`"moves": [{"sequence": 2, "period": "2025-01-01", "number": "322685000131090"}]`:            "moves[0].period",
		`"moves": [{"sequence": 2, "number": "322685000131090"}, {"sequence": 1, "number": "9"}]`:    "moves[1].sequence",
		`"moves": [{"number": "9"}]`:                                                                 "moves[0].sequence",
		`"brought": [{"sequence": 2}]`:                                                               "brought[0].number",
		`"brought": [{"sequence": 2, "number": 9}]`:                                                  "brought[0].number",
		`"brought": [{"sequence": 2, "number": "9", "count": 2}]`:                                    "brought[0].count",
		`"date": "2025-03-01", "brought": [{"sequence": 18, "period": "2024-01-01", "number": "9"}]`: "brought[0].period",
		`"moves": [{"sequence": 18, "period": "2099-01-01", "number": "9"}]`:                         "date",
	} {
		r.post(4, `{"kind": 3, `+body+`}`).problem(invalidEvent, field)
	}
	r.post(4, `{"kind": 3, "moves": [{"sequence": 3, "number": "322685000131072"}]}`).problem(exhausted, "")
	r.post(4, `{"kind": 3, "brought": [{"sequence": 2, "number": "322685000131090"}],
		"records": [{"number_index": 0, "new": true, "data": 1}]}`).has(http.StatusCreated)
	r.get("/v1/workspaces/4/records/2/322685000131090").has(http.StatusOK)
}
