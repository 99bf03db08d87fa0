package verify_test

import (
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/verify"
)

func dedupFaults() []planted {
	found := func(at messages.WLogOffset) doctored {
		return doctored{find: func(messages.WSID, messages.WLogOffset) messages.WLogOffset { return at }}
	}
	return []planted{
		{"an id is not found", found(0), place{verify.CheckDedup, 1, 1, "is found at offset 0, want 1"}},
		{"an id is found elsewhere", found(2), place{verify.CheckDedup, 1, 1, "is found at offset 2, want 1"}},
		{
			"two events with one id", change(1, 2, func(e *messages.Event) { e.DedupID = messages.DedupID{4} }),
			place{verify.CheckDedup, 1, 2, "is found at offset 1, want 2"},
		},
		{
			"an id among events appended together", change(1, 2, func(e *messages.Event) { e.DedupID = messages.DedupID{4} }),
			place{verify.CheckTogether, 1, 2, "among the events appended with offset 1"},
		},
		{
			"an append within an append", change(1, 2, func(e *messages.Event) { e.Together = 1 }),
			place{verify.CheckTogether, 1, 2, "together 1 among"},
		},
		{
			"another workspace among events appended together", change(0, 1, func(e *messages.Event) { e.Together = 1 }),
			place{verify.CheckTogether, 0, 2, "workspace 6"},
		},
		{
			"events appended together are missing", change(1, 2, func(e *messages.Event) { e.Together = 2 }),
			place{verify.CheckTogether, 1, 2, "2 of the events"},
		},
		{
			"the WLog has another id",
			doctored{wlog: func(e *messages.Event) bool { e.DedupID[1]++; return true }},
			place{verify.CheckWLog, 1, 1, "differs from PLog"},
		},
		{
			"the WLog has other events together",
			doctored{wlog: func(e *messages.Event) bool { e.Together++; return true }},
			place{verify.CheckWLog, 1, 1, "differs from PLog"},
		},
	}
}
