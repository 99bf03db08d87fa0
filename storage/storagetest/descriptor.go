package storagetest

import (
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// The kinds and sequences of [Descriptor].
const (
	KindPerson  messages.WSKind = 1
	KindCompany messages.WSKind = 2

	// SeqOrder is of both kinds, from 1.
	SeqOrder messages.SeqID = 16
	// SeqInvoice is a person's, from 1000.
	SeqInvoice messages.SeqID = 17
	// SeqStaff is a company's, from 50.
	SeqStaff messages.SeqID = 18
	// SeqBadge is a person's, from 1 to LargestBadge.
	SeqBadge messages.SeqID = 21
	// SeqReceipt is of both kinds and restarts each day. The two newest days keep their numbers, and
	// the day before the newest one in any case.
	SeqReceipt messages.SeqID = 19
	// SeqCase is of both kinds, from 100, and restarts each month. All months keep their numbers.
	SeqCase messages.SeqID = 20
)

// LargestBadge is the last number of SeqBadge.
const LargestBadge messages.Number = 5

// FirstDay is the day of events that say nothing of it.
const FirstDay calendar.Date = 20260329

// InitialInvoice and those below are the initial values of these sequences.
const (
	InitialInvoice messages.Number = 1000
	InitialStaff   messages.Number = 50
	InitialCase    messages.Number = 100
)

// Descriptor returns an application for tests: three partitions and two kinds.
// The workspaces of a partition p are those with WSID mod 3 = p.
func Descriptor(level messages.TrustLevel) messages.Descriptor {
	receipt := messages.Sequence{
		ID: SeqReceipt, Name: "receipt", Initial: 1, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Keep: 2},
	}
	caseNumber := messages.Sequence{
		ID: SeqCase, Name: "case", Initial: InitialCase, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Month}},
	}
	return messages.Descriptor{
		Application: "storagetest",
		Partitions:  3,
		TrustLevel:  level,
		Kinds: []messages.Kind{
			{ID: KindPerson, Name: "person", Sequences: []messages.Sequence{
				{ID: SeqOrder, Name: "order", Initial: 1},
				{ID: SeqInvoice, Name: "invoice", Initial: InitialInvoice},
				{ID: SeqBadge, Name: "badge", Initial: 1, Largest: LargestBadge},
				receipt, caseNumber,
			}},
			{ID: KindCompany, Name: "company", Sequences: []messages.Sequence{
				{ID: SeqOrder, Name: "order", Initial: 1},
				{ID: SeqStaff, Name: "staff", Initial: InitialStaff},
				receipt, caseNumber,
			}},
		},
	}
}
