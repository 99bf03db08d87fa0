package dumps

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
)

// every has all structures of package messages, as TestEveryMessage makes sure of.
var every = []any{
	messages.ActorStatus{}, messages.SubscribeToStatuses{}, messages.UnsubscribeFromStatuses{}, messages.StatusReport{},
	messages.Wanted{}, messages.Draft{}, messages.DraftRecord{}, messages.Append{}, messages.Appended{},
	messages.Command{}, messages.RawRecord{}, messages.CommandDone{}, messages.Kind{}, messages.Descriptor{},
	messages.BusyError{}, messages.OverflowError{}, messages.BackwardError{}, messages.BusinessDateError{},
	messages.RecordAheadError{}, messages.TooLargeError{}, messages.PartitionError{}, messages.ClockError{},
	messages.OffsetError{}, messages.Event{}, messages.SequenceNumber{}, messages.SequencePeriod{}, messages.RecordID{},
	messages.Record{}, messages.Section{}, messages.Formats{}, messages.Printer{}, messages.LaneStatus{},
	messages.HoldLane{}, messages.ReleaseLane{}, messages.ReloadLane{}, messages.TryEvent{}, messages.StopLane{},
	messages.PositionLoaded{}, messages.LogGrown{}, messages.EventsRead{}, messages.LogEvent{}, messages.BatchHandled{},
	messages.PositionStored{}, messages.RetryFired{}, messages.Held{}, messages.Tried{}, messages.LaneStopped{},
	messages.LoadPosition{}, messages.AwaitLog{}, messages.ReadLog{}, messages.HandleBatch{}, messages.StorePosition{},
	messages.PoisonEvent{}, messages.Numbering{}, messages.NumberSet{}, messages.WorkspaceNumbers{}, messages.Register{},
	messages.EventsWritten{}, messages.RefusedEvent{}, messages.EventsLoaded{}, messages.Loaded{}, messages.Written{},
	messages.Taken{}, messages.Replayed{}, messages.ReplayFailed{}, messages.Found{}, messages.OwnerStopped{},
	messages.TimerFired{}, messages.Stop{}, messages.Stopped{}, messages.Reconfigure{}, messages.Reconfigured{},
	messages.WriteProjections{}, messages.WriteEvents{}, messages.Replay{}, messages.Credit{}, messages.EndReplay{},
	messages.LoadNumbers{}, messages.FindEvent{}, messages.LoadEvents{}, messages.Sequence{}, messages.Restart{},
	messages.Token{}, messages.Start{}, messages.Next{}, messages.Raise{}, messages.Flush{}, messages.Actualize{},
	messages.Cancel{}, messages.Started{}, messages.Given{}, messages.Raised{}, messages.Flushed{},
	messages.Actualizing{}, messages.Cancelled{}, messages.Refused{}, messages.Settings{}, messages.PartitionStatus{},
	messages.NearlyUsed{},
}

// fill sets everything that is in a value, as deep as that goes.
func fill(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	switch v.Type() {
	case timeType:
		v.Set(reflect.ValueOf(time.Unix(1_700_000_000, 5)))
		return
	case dateType:
		v.Set(reflect.ValueOf(calendar.DateOf(time.Unix(1_700_000_000, 0))))
		return
	case ofErrors:
		v.Set(reflect.ValueOf(errors.New("full")))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.String:
		v.SetString("text")
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, depth+1)
		fill(t, value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		if depth < maxDepth { // deeper, it refers to itself
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), depth+1)
			}
		}
	case reflect.Interface, reflect.Func, reflect.Chan: // what is in them is not of package messages
	default:
		t.Fatalf("what is to be set in a %v?", v.Type())
	}
}

// hasFields reports whether a structure has something to show.
func hasFields(t reflect.Type) bool {
	for f := range t.Fields() {
		if f.IsExported() {
			return true
		}
	}
	return false
}

// TestEveryMessage: each message is shown, with all that can be in it, and as one that is sent, by its reference.
func TestEveryMessage(t *testing.T) {
	listed := make(map[string]bool)
	for _, message := range every {
		typ := reflect.TypeOf(message)
		listed[typ.Name()] = true
		v := reflect.New(typ)
		fill(t, v.Elem(), 0)
		body := bodyOf(t, Group{Bodies: true, Longest: maxLongest}, v.Interface())
		var shown map[string]any
		if isText := reflect.PointerTo(typ).Implements(ofErrors); isText {
			check(t, json.Unmarshal([]byte(body), new(string)))
		} else if err := json.Unmarshal([]byte(body), &shown); err != nil || len(shown) == 0 && hasFields(typ) {
			t.Errorf("%v: got %q, want its fields: %v", typ, body, err)
		}
		if body == "" || strings.Contains(body, "<panic") {
			t.Errorf("%v: got %q", typ, body)
		}
	}
	files, err := filepath.Glob("../messages/*.go")
	check(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		check(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.IsExported() && !listed[spec.Name.Name] {
				if _, isStruct := spec.Type.(*ast.StructType); isStruct {
					t.Errorf("%s: %s is not in every", path, spec.Name.Name)
				}
			}
			return true
		})
	}
}
