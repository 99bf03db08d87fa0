package dumps

import (
	"math"
	"reflect"
	"strings"
	"sync"

	"github.com/partita-go/partita/actors"
	"github.com/partita-go/partita/messages"
)

// Classes of messages, as in [Line].
const (
	// ClassRuntime: partita's own.
	ClassRuntime = "runtime"
	// ClassSystem: those of the actor system, whose content is its own and not shown.
	ClassSystem = "system"
	// ClassApplication: all others.
	ClassApplication = "application"
)

// messageType is what is known of all messages of a type.
type messageType struct {
	name string
	// names is the part of a line that names it.
	names string
	// encoder is nil if the content is not shown.
	encoder *encoder
}

var (
	messageTypes sync.Map // from reflect.Type to *messageType
	encoders     sync.Map // from reflect.Type to *encoder: those behind interfaces
)

// typeOf returns what is known of a message's type.
func typeOf(message any) *messageType {
	t := reflect.TypeOf(message)
	if known, ok := messageTypes.Load(t); ok {
		return known.(*messageType) //nolint:errcheck // there is nothing else in it
	}
	m := newMessageType(t)
	messageTypes.Store(t, m)
	return m
}

func newMessageType(t reflect.Type) *messageType {
	name, protocol := actors.NamesOf(t)
	if t == nil {
		return &messageType{name: name, names: namesOf(ClassApplication, name, protocol)}
	}
	named := t
	if t.Kind() == reflect.Pointer {
		named = t.Elem()
	}
	class := classOf(named.PkgPath())
	m := &messageType{name: name, names: namesOf(class, name, protocol)}
	if class != ClassSystem {
		m.encoder = encoderOf(t)
	}
	return m
}

// namesOf returns the part of a line that names a message.
func namesOf(class, name, protocol string) string {
	to := append(append([]byte(nil), `,"cl":"`+class+`","mn":`...), appendText(nil, name, math.MaxInt)...)
	return string(append(append(to, `,"mp":`...), appendText(nil, protocol, math.MaxInt)...))
}

// classOf returns the class of the messages of a package.
func classOf(pkg string) string {
	switch {
	case strings.HasPrefix(pkg, "github.com/asynkron/protoactor-go/"):
		return ClassSystem
	case pkg == reflect.TypeFor[messages.Append]().PkgPath(), pkg == reflect.TypeFor[actors.Key]().PkgPath():
		return ClassRuntime
	}
	return ClassApplication
}

// encoderOf returns the encoder of a type.
func encoderOf(t reflect.Type) *encoder {
	if known, ok := encoders.Load(t); ok {
		return known.(*encoder) //nolint:errcheck // there is nothing else in it
	}
	e := compile(t, make(map[reflect.Type]*encoder))
	encoders.Store(t, e)
	return e
}
