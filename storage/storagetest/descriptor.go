package storagetest

import "github.com/partita-go/partita/messages"

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
	SeqBadge messages.SeqID = 19
)

// LargestBadge is the last number of SeqBadge.
const LargestBadge messages.Number = 5

// InitialInvoice and InitialStaff are the initial values of these sequences.
const (
	InitialInvoice messages.Number = 1000
	InitialStaff   messages.Number = 50
)

// Descriptor returns an application for tests: three partitions and two kinds.
// The workspaces of a partition p are those with WSID mod 3 = p.
func Descriptor(level messages.TrustLevel) messages.Descriptor {
	return messages.Descriptor{
		Application: "storagetest",
		Partitions:  3,
		TrustLevel:  level,
		Kinds: []messages.Kind{
			{ID: KindPerson, Name: "person", Sequences: []messages.Sequence{
				{ID: SeqOrder, Name: "order", Initial: 1},
				{ID: SeqInvoice, Name: "invoice", Initial: InitialInvoice},
				{ID: SeqBadge, Name: "badge", Initial: 1, Largest: LargestBadge},
			}},
			{ID: KindCompany, Name: "company", Sequences: []messages.Sequence{
				{ID: SeqOrder, Name: "order", Initial: 1},
				{ID: SeqStaff, Name: "staff", Initial: InitialStaff},
			}},
		},
	}
}
