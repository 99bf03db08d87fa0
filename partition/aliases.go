package partition

import (
	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// The types that users meet, under one roof.
type (
	// Sequencer is the typed client of one partition.
	Sequencer = actors.Sequencer
	// StartOption says more about a transaction, like [OnDate].
	StartOption = actors.StartOption
	// Transaction is an open sequencing transaction.
	Transaction = actors.Transaction
	// CommandProcessor is a handle on a command processor and its typed client.
	CommandProcessor = actors.CommandProcessor
	// CommandContext is a command under way, as its handler sees it.
	CommandContext = actors.CommandContext
	// Handler decides what a command does.
	Handler = actors.Handler
	// Drafter decides what a command does without knowing its numbers.
	Drafter = actors.Drafter
	// DraftContext is a command whose event is being drafted.
	DraftContext = actors.DraftContext
	// AppendTo says where drafts go and under which conditions.
	AppendTo = actors.AppendTo
	// Draft is an event that has no numbers yet.
	Draft = messages.Draft
	// DraftRecord is a row as a draft writes it.
	DraftRecord = messages.DraftRecord
	// Wanted asks for numbers of a sequence.
	Wanted = messages.Wanted
	// Appended says where an append stands.
	Appended = messages.Appended
	// DedupID is a caller's name for an append, so that it can be repeated.
	DedupID = messages.DedupID
	// Observer is told about every message of every actor.
	Observer = actors.Observer
	// KeyedObserver is an Observer that has another one for each actor.
	KeyedObserver = actors.KeyedObserver
	// ActorKey identifies an actor by its group and its key within the group.
	ActorKey = actors.Key
	// Clock is where the time comes from.
	Clock = actors.Clock
	// Settings can be changed while an application runs.
	Settings = messages.Settings
	// Counts are what all partitions of an application have counted.
	Counts = actors.Counts
	// Figures are what a partition has done, and what it has to do.
	Figures = actors.PartitionFigures
	// LaneFigures are about a request lane.
	LaneFigures = actors.LaneFigures
	// Status is a partition's state with details.
	Status = messages.PartitionStatus
)

// OnDate gives the event of a transaction a business date: it decides in which periods the numbers
// are, of sequences that restart.
func OnDate(date calendar.Date) StartOption { return actors.OnDate(date) }

// SetZone makes the event of a transaction give its workspace a time zone, by its name in the IANA's
// database: each sequence that restarts goes by it from its next period on.
func SetZone(name string) StartOption { return actors.SetZone(name) }

// Observers returns an Observer that tells several, in their order; nil ones are left out.
func Observers(all ...Observer) Observer { return actors.Observers(all...) }
