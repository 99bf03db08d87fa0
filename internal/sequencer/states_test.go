package sequencer

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/messages"
)

// inState is a world whose core is in a state, with the token that the messages
// bear: that of the open transaction, else of the event before the last.
type inState struct {
	*world
	token messages.Token
}

// stateSettings let only timers that a test fires do anything.
var stateSettings = messages.Settings{FlushInterval: never, TransactionLimit: time.Second}

func flushedTwice(t *testing.T) inState {
	w := up(t, stateSettings)
	o := w.begun(1, kindWide)
	w.commit(o)
	w.event(1, kindWide)
	return inState{w, o.token}
}

// states are built anew for each message.
var states = []struct {
	name  string
	build func(t *testing.T) inState
}{
	{"actualizing", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.crash()
		return s
	}},
	{"taken", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.crash()
		s.work(actualizerLeaf)
		s.deliver(actualizerLeaf)
		return s
	}},
	{"idle", flushedTwice},
	{"loading", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.request(messages.Start{Workspace: 3, Kind: kindWide})
		return s
	}},
	{"writing", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.append(s.one(1, kindWide))
		return s
	}},
	{"open", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.token = s.begun(1, kindWide).token
		return s
	}},
	{"stopping open", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.token = s.begun(1, kindWide).token
		s.stop()
		return s
	}},
	{"stopping actualizing", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.crash()
		s.stop()
		return s
	}},
	{"stopping", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.stop()
		return s
	}},
	{"stopping writing", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.append(s.one(1, kindWide))
		s.stop()
		return s
	}},
	{"stopped", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.stop()
		s.settle()
		return s
	}},
	{"failed", func(t *testing.T) inState {
		s := flushedTwice(t)
		s.crash()
		s.breakReplay = true
		s.settle()
		return s
	}},
}

// stateMessages is every message that a core takes, with what it says to it in each
// state: the reply, or "-", and the next state, or "" if that is the same. Leaves'
// answers are the ones under way where there is one.
var stateMessages = []struct {
	name string
	make func(s inState) messages.PartitionMessage
	want string
}{
	{"Start", func(inState) messages.PartitionMessage {
		return &messages.Start{Workspace: 1, Kind: kindWide}
	}, "busy actualizing | busy actualizing | Started>open | Started>open | - | - | busy stopping | busy stopping | busy stopping | busy stopping | stopped | failed"},
	{"Append", func(s inState) messages.PartitionMessage {
		m := s.one(1, kindWide)
		return &m
	}, "- | - | ->writing | ->writing | - | - | busy stopping | busy stopping | busy stopping | busy stopping | stopped | failed"},
	{"Next", func(s inState) messages.PartitionMessage {
		return &messages.Next{Token: s.token, Seq: seqPlain}
	}, "fenced | fenced | no transaction | no transaction | no transaction | Given | Given | fenced | no transaction | no transaction | stopped | failed"},
	{"Raise", func(s inState) messages.PartitionMessage {
		return &messages.Raise{Token: s.token, ID: messages.RecordID{Seq: seqPlain, Number: 5}}
	}, "fenced | fenced | no transaction | no transaction | no transaction | Raised | Raised | fenced | no transaction | no transaction | stopped | failed"},
	{"Flush", func(s inState) messages.PartitionMessage {
		return &messages.Flush{Token: s.token}
	}, "- | - | - | - | - | Flushed>idle | Flushed>stopping | - | - | - | stopped | failed"},
	{"Cancel", func(s inState) messages.PartitionMessage {
		return &messages.Cancel{Token: s.token}
	}, "fenced | fenced | no transaction | no transaction | no transaction | Cancelled>idle | Cancelled>stopping | fenced | no transaction | no transaction | stopped | failed"},
	{"Actualize", func(s inState) messages.PartitionMessage {
		return &messages.Actualize{Token: s.token}
	}, "Actualizing | Actualizing | no transaction | no transaction | no transaction | Actualizing>actualizing | Actualizing>stopping actualizing | Actualizing | no transaction | no transaction | stopped | failed"},
	{"OwnerStopped", func(s inState) messages.PartitionMessage {
		return &messages.OwnerStopped{Token: s.token}
	}, "- | - | - | - | - | ->actualizing | ->stopping actualizing | - | - | - | - | -"},
	{"Loaded", func(s inState) messages.PartitionMessage {
		return &messages.Loaded{Generation: s.core.generation, Load: s.core.lastLoad, Numbers: messages.WorkspaceNumbers{Workspace: 3}}
	}, "- | - | - | ->open | - | - | - | - | - | - | - | -"},
	{"Written", func(s inState) messages.PartitionMessage {
		return &messages.Written{Generation: s.core.generation, Checkpoint: 3}
	}, "- | - | - | - | - | - | - | - | ->stopped | - | - | -"},
	{"EventsWritten", func(s inState) messages.PartitionMessage {
		return &messages.EventsWritten{Generation: s.core.generation, First: 3}
	}, "- | - | - | - | ->idle | - | - | - | - | ->stopping | - | -"},
	{"EventsLoaded", func(s inState) messages.PartitionMessage {
		return &messages.EventsLoaded{Generation: s.core.generation, Load: 1}
	}, "- | - | - | - | - | - | - | - | - | - | - | -"},
	{"Found", func(s inState) messages.PartitionMessage {
		return &messages.Found{Generation: s.core.generation, Token: s.token, Present: true}
	}, "- | - | - | - | - | - | - | - | - | - | - | -"},
	{"Taken", func(s inState) messages.PartitionMessage {
		return &messages.Taken{Generation: s.core.generation, Register: messages.Register{Epoch: 2, Last: 2, Checkpoint: 1}}
	}, "->taken | - | - | - | - | - | - | - | - | - | - | -"},
	{"Replayed", func(s inState) messages.PartitionMessage {
		answer := s.readTail(&messages.Credit{Generation: s.core.generation, From: 1})
		return answer.(*messages.Replayed)
	}, "- | ->idle | - | - | - | - | - | - | - | - | - | -"},
	{"ReplayFailed", func(s inState) messages.PartitionMessage {
		return &messages.ReplayFailed{Generation: s.core.generation, Outcome: messages.Broken, Err: errDown}
	}, "->failed | ->failed | - | - | - | - | - | ->stopped | - | - | - | -"},
	{"TimerFired", func(s inState) messages.PartitionMessage {
		s.now += messages.Timestamp(time.Second / time.Microsecond)
		return &messages.TimerFired{Timer: messages.TimerTransaction}
	}, "- | - | - | - | - | ->actualizing | ->stopping actualizing | - | - | - | - | -"},
	{"Stop", func(inState) messages.PartitionMessage {
		return &messages.Stop{}
	}, "->stopping actualizing | ->stopping actualizing | ->stopping | ->stopping | ->stopping writing | ->stopping open | - | - | - | - | Stopped | Stopped>stopped"},
	{"Reconfigure", func(inState) messages.PartitionMessage {
		return &messages.Reconfigure{Settings: stateSettings}
	}, "Reconfigured | Reconfigured | Reconfigured | Reconfigured | Reconfigured | Reconfigured | Reconfigured | Reconfigured | Reconfigured | Reconfigured | stopped | Reconfigured"},
}

func TestEveryMessageInEveryState(t *testing.T) {
	for _, message := range stateMessages {
		wants := strings.Split(message.want, "|")
		if len(wants) != len(states) {
			t.Fatalf("%s: got %d cells, want %d", message.name, len(wants), len(states))
		}
		for i, state := range states {
			t.Run(message.name+"/"+state.name, func(t *testing.T) {
				s := state.build(t)
				if got := s.stateName(); got != state.name {
					t.Fatalf("got state %s", got)
				}
				m := message.make(s)
				if got := reflect.TypeOf(m).Elem().Name(); got != message.name {
					t.Fatalf("got a %s", got)
				}
				got := s.cell(m)
				if s.stateName() != state.name {
					got += ">" + s.stateName()
				}
				if want := strings.TrimSpace(wants[i]); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		}
	}
}

// TestEveryMessageIsListed reads the sealed protocol from its source: a type that is
// added must be added to the table.
func TestEveryMessageIsListed(t *testing.T) {
	files, err := filepath.Glob("../../messages/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources of messages: %v", err)
	}
	var declared []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if ok && f.Name.Name == "partitionMessage" {
				declared = append(declared, f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name)
			}
		}
	}
	var listed []string
	for _, m := range stateMessages {
		listed = append(listed, m.name)
	}
	slices.Sort(declared)
	slices.Sort(listed)
	if !slices.Equal(declared, listed) {
		t.Fatalf("the protocol has\n%v\nthe table has\n%v", declared, listed)
	}
}

// cell steps the core and names the reply.
func (s inState) cell(m messages.PartitionMessage) string {
	const me = "me"
	for _, r := range s.core.Step(me, m, s.now).Replies {
		if r.To == Requester(me) {
			return replyName(r.Message)
		}
	}
	return "-"
}

func replyName(m any) string {
	refused, ok := m.(*messages.Refused)
	if !ok {
		return reflect.TypeOf(m).Elem().Name()
	}
	if busy, ok := errors.AsType[*messages.BusyError](refused.Err); ok {
		return fmt.Sprintf("busy %v", busy.Reason)
	}
	for name, err := range map[string]error{
		"fenced": messages.ErrFenced, "no transaction": messages.ErrNoTransaction,
		"stopped": messages.ErrStopped, "failed": messages.ErrPartitionFailed,
	} {
		if errors.Is(refused.Err, err) {
			return name
		}
	}
	return refused.Err.Error()
}

// stateName tells the states apart by what the core holds.
func (s inState) stateName() string {
	c := s.core
	switch {
	case c.state == messages.StateInitializing && c.isStopping():
		return "stopping actualizing"
	case c.state == messages.StateInitializing && c.replay.taken:
		return "taken"
	case c.state == messages.StateInitializing:
		return "actualizing"
	case c.state == messages.StateTerminating && c.txn.open:
		return "stopping open"
	case c.state == messages.StateTerminating && c.batch.underWay:
		return "stopping writing"
	case c.state == messages.StateTerminating:
		return "stopping"
	case c.state == messages.StateTerminated:
		return "stopped"
	case c.state == messages.StateFailed:
		return "failed"
	case c.txn.open:
		return "open"
	case c.batch.underWay:
		return "writing"
	case len(c.loads) > 0:
		return "loading"
	}
	return "idle"
}

// TestUnknownTimer: whatever comes, nothing panics.
func TestUnknownTimer(t *testing.T) {
	for _, state := range states {
		s := state.build(t)
		s.core.Step(nil, &messages.TimerFired{Timer: messages.Timers}, s.now)
		s.core.Step(nil, &messages.TimerFired{Timer: 255}, s.now)
		if got := s.stateName(); got != state.name {
			t.Errorf("got state %s, want %s", got, state.name)
		}
	}
}
