package partition

import (
	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/actors/groups"
	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// The types that users meet, under one roof. The packages that make them define them, which this one imports: so an alias
// keeps it one type. Of an alias `go doc` tells no methods and fields, so the comments list them: TestAliasesTell writes
// these lists. What each method does is told where the type is defined.
type (
	// Sequencer is the typed client of one partition.
	//
	//	func (*Sequencer) Append(ctx context.Context, to AppendTo, draft Draft) (*Appended, error)
	//	func (*Sequencer) AppendAll(ctx context.Context, to AppendTo, drafts []Draft) ([]Appended, error)
	//	func (*Sequencer) PID() *actor.PID
	//	func (*Sequencer) Partition() messages.PartitionID
	//	func (*Sequencer) Start(ctx context.Context, kind messages.WSKind, ws messages.WSID, options ...StartOption) (*Transaction, error)
	//	func (*Sequencer) StartWaiting(ctx context.Context, kind messages.WSKind, ws messages.WSID, options ...StartOption) (*Transaction, error)
	//	func (*Sequencer) Status() Status
	Sequencer = actors.Sequencer
	// StartOption says more about a transaction, like [OnDate].
	//
	//	func(*messages.Start)
	StartOption = actors.StartOption
	// Transaction is an open sequencing transaction.
	//
	//	func (*Transaction) Actualize(ctx context.Context) error
	//	func (*Transaction) Bring(ctx context.Context, n messages.SequenceNumber) error
	//	func (*Transaction) Cancel(ctx context.Context) error
	//	func (*Transaction) Commit(ctx context.Context, body []byte, records ...messages.Record) error
	//	func (*Transaction) Event(body []byte, records ...messages.Record) (messages.Event, error)
	//	func (*Transaction) Flush(ctx context.Context) error
	//	func (*Transaction) Lapsed() bool
	//	func (*Transaction) Move(ctx context.Context, n messages.SequenceNumber) error
	//	func (*Transaction) Next(ctx context.Context, seq messages.SeqID) (messages.Number, error)
	//	func (*Transaction) NextRange(ctx context.Context, w Wanted) (first messages.Number, err error)
	//	func (*Transaction) Numbers() []messages.SequenceNumber
	//	func (*Transaction) PLogOffset() messages.PLogOffset
	//	func (*Transaction) Raise(ctx context.Context, id messages.RecordID) error
	//	func (*Transaction) RegisteredAt() messages.Timestamp
	//	func (*Transaction) Token() messages.Token
	//	func (*Transaction) WLogOffset() messages.WLogOffset
	//	func (*Transaction) Write(ctx context.Context, body []byte, records ...messages.Record) error
	Transaction = actors.Transaction
	// CommandProcessor is a handle on a command processor and its typed client.
	//
	//	func (*CommandProcessor) BeginStop()
	//	func (*CommandProcessor) Execute(ctx context.Context, c messages.Command) (*messages.CommandDone, error)
	//	func (*CommandProcessor) Interrupted(f actors.Failure)
	//	func (*CommandProcessor) PID() *actor.PID
	//	func (*CommandProcessor) Requests() LaneFigures
	//	func (*CommandProcessor) SetLane(requests, bytes int)
	//	func (*CommandProcessor) SetLimit(d time.Duration)
	//	func (*CommandProcessor) Standing() *actors.Standing
	//	func (*CommandProcessor) Stop(ctx context.Context) error
	//	func (*CommandProcessor) Terminated() <-chan struct{}
	CommandProcessor = actors.CommandProcessor
	// CommandContext is a command under way, as its handler sees it.
	//
	//	func (*CommandContext) Bring(ctx context.Context, n messages.SequenceNumber) error
	//	func (*CommandContext) Command() *messages.Command
	//	func (*CommandContext) ID(raw messages.RawID) (messages.RecordID, error)
	//	func (*CommandContext) Insert(ctx context.Context, id messages.RecordID, data []byte) error
	//	func (*CommandContext) Move(ctx context.Context, n messages.SequenceNumber) error
	//	func (*CommandContext) Next(ctx context.Context, seq messages.SeqID) (messages.Number, error)
	//	func (*CommandContext) NextRange(ctx context.Context, w Wanted) (first messages.Number, err error)
	//	func (*CommandContext) PLogOffset() messages.PLogOffset
	//	func (*CommandContext) RegisteredAt() messages.Timestamp
	//	func (*CommandContext) SetBody(body []byte)
	//	func (*CommandContext) Update(id messages.RecordID, data []byte)
	//	func (*CommandContext) WLogOffset() messages.WLogOffset
	CommandContext = actors.CommandContext
	// Handler decides what a command does.
	//
	//	func(ctx context.Context, c *CommandContext) error
	Handler = actors.Handler
	// Drafter decides what a command does without knowing its numbers.
	//
	//	func(ctx context.Context, d *DraftContext) error
	Drafter = actors.Drafter
	// DraftContext is a command whose event is being drafted.
	//
	//	func (*DraftContext) Bring(n messages.SequenceNumber) int
	//	func (*DraftContext) Command() *messages.Command
	//	func (*DraftContext) Insert(number int, data []byte)
	//	func (*DraftContext) InsertID(id messages.RecordID, data []byte)
	//	func (*DraftContext) Move(n messages.SequenceNumber)
	//	func (*DraftContext) Number(raw messages.RawID) (int, error)
	//	func (*DraftContext) SetBody(body []byte)
	//	func (*DraftContext) SetDate(date calendar.Date)
	//	func (*DraftContext) SetZone(name string)
	//	func (*DraftContext) Update(id messages.RecordID, data []byte)
	//	func (*DraftContext) Want(seq messages.SeqID) int
	DraftContext = actors.DraftContext
	// Group is several command processors behind one handle.
	Group = groups.Group
	// Router chooses the members of a group that get a command.
	Router = groups.Router
	// Route is what a Router chooses.
	Route = groups.Route
	// Outcome is what became of a command at one member of a group.
	Outcome = groups.Outcome
	// AppendTo says where drafts go and under which conditions.
	//
	//	Workspace messages.WSID
	//	Kind messages.WSKind
	//	DedupID messages.DedupID
	//	Expected messages.WLogOffset
	//	Wait bool
	AppendTo = actors.AppendTo
	// Draft is an event that has no numbers yet.
	//
	//	Wanted []Wanted
	//	Brought []messages.SequenceNumber
	//	Moves []messages.SequenceNumber
	//	Body []byte
	//	Records []DraftRecord
	//	Date calendar.Date
	//	Zone string
	//	func (*Draft) Count() int
	Draft = messages.Draft
	// DraftRecord is a row as a draft writes it.
	//
	//	ID messages.RecordID
	//	Number int
	//	New bool
	//	Data []byte
	DraftRecord = messages.DraftRecord
	// Wanted asks for numbers of a sequence.
	//
	//	Seq messages.SeqID
	//	Count uint32
	//	func (Wanted) Numbers() int
	Wanted = messages.Wanted
	// Appended says where an append stands.
	//
	//	Partition messages.PartitionID
	//	PLogOffset messages.PLogOffset
	//	WLogOffset messages.WLogOffset
	//	RegisteredAt messages.Timestamp
	//	Numbers []messages.SequenceNumber
	//	Repeated bool
	Appended = messages.Appended
	// DedupID is a caller's name for an append, so that it can be repeated.
	//
	//	func (DedupID) IsZero() bool
	//	func (DedupID) String() string
	DedupID = messages.DedupID
	// Observer is told about every message of every actor.
	//
	//	Posted(key ActorKey, message any)
	//	Taken(key ActorKey, message any)
	//	Handled(key ActorKey, message any)
	Observer = actors.Observer
	// KeyedObserver is an Observer that has another one for each actor.
	//
	//	Observer
	//	ForActor(key ActorKey) Observer
	KeyedObserver = actors.KeyedObserver
	// Tracer joins the traces of the runtime with those of a program.
	//
	//	Join(ctx context.Context, id ids.TraceID) (joined ids.TraceID, span ids.SpanID)
	//	Handling(ctx context.Context, message any) context.Context
	Tracer = actors.Tracer
	// ActorKey identifies an actor by its group and its key within the group.
	//
	//	Group string
	//	ID string
	//	func (ActorKey) IsMember() bool
	//	func (ActorKey) String() string
	ActorKey = actors.Key
	// Clock is where the time comes from.
	//
	//	Now() time.Time
	//	AfterFunc(d time.Duration, f func()) actors.Timer
	Clock = actors.Clock
	// Settings can be changed while an application runs.
	//
	//	FlushThreshold int
	//	FlushInterval time.Duration
	//	BusyLimit int
	//	BusyEvents int
	//	InFlightEvents int
	//	InFlightBytes int
	//	GroupBytes int
	//	BatchEvents int
	//	RetryDelay time.Duration
	//	TransactionLimit time.Duration
	//	StopLimit time.Duration
	//	CatchUpCheckpoint time.Duration
	//	ClockJump time.Duration
	//	func (Settings) Validate() error
	//	func (Settings) WithDefaults() Settings
	Settings = messages.Settings
	// Counts are what all partitions of an application have counted.
	//
	//	Refusals map[string]uint64
	//	Changes map[messages.PartitionState]uint64
	//	Moves map[string]map[messages.ActorState]uint64
	//	Busy map[string]uint64
	//	Repeats uint64
	//	Reads uint64
	Counts = actors.Counts
	// Figures are what a partition has done, and what it has to do.
	//
	//	Appends uint64
	//	Transactions uint64
	//	OpenSince messages.Timestamp
	//	Recovery time.Duration
	//	Requests LaneFigures
	Figures = actors.PartitionFigures
	// LaneFigures are about a request lane.
	//
	//	Key ActorKey
	//	Requests int
	//	Bytes int
	//	MostRequests int
	//	MostBytes int
	LaneFigures = actors.LaneFigures
	// Status is a partition's state with details.
	//
	//	Partition messages.PartitionID
	//	State messages.PartitionState
	//	Epoch messages.Epoch
	//	Last messages.PLogOffset
	//	Checkpoint messages.PLogOffset
	//	Details string
	//	Replayed uint64
	//	Tail uint64
	//	Actualizations uint64
	//	FlushFailures int
	//	Restarts uint64
	//	Abandoned int
	//	Clean bool
	//	Err error
	//	NearlyUsed []messages.NearlyUsed
	//	Displaced error
	//	Full error
	//	func (*Status) Unflushed() uint64
	Status = messages.PartitionStatus
	// ActorStatus is an actor's state with details.
	//
	//	Group string
	//	ID string
	//	State messages.ActorState
	//	Details string
	//	Restarts uint64
	//	Restart string
	//	Err error
	//	Partition Status
	ActorStatus = messages.ActorStatus
	// RestartMode says whether actors that panic are restarted.
	//
	//	func (RestartMode) String() string
	RestartMode = actors.RestartMode
)

// OnDate gives the event of a transaction a business date: it decides in which periods the numbers
// are, of sequences that restart.
func OnDate(date calendar.Date) StartOption { return actors.OnDate(date) }

// SetZone makes the event of a transaction give its workspace a time zone, by its name in the IANA's
// database: each sequence that restarts goes by it from its next period on.
func SetZone(name string) StartOption { return actors.SetZone(name) }

// Observers returns an Observer that tells several, in their order; nil ones are left out.
func Observers(all ...Observer) Observer { return actors.Observers(all...) }

// NoMember stands for the member in an outcome that is none of a member's.
const NoMember = groups.NoMember

// ToMembers chooses members of a group by their numbers, from 0 on. One that is named twice gets the command once.
func ToMembers(members ...int) Route { return groups.ToMembers(members...) }

// ToAll chooses all members of a group.
func ToAll() Route { return groups.ToAll() }

// ToNone chooses no member of a group: whoever has sent the command gets [ErrNoMember].
func ToNone() Route { return groups.ToNone() }
