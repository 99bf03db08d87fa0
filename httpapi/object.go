package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// object is a JSON object whose members are taken one after the other. It keeps the first
// error; what is taken behind that counts no more.
type object struct {
	// kind is that of its errors.
	kind *problemKind
	// prefix is what stands before the names of members in errors.
	prefix  string
	members map[string]json.RawMessage
	err     error
}

// newObject reads an object that stands in a field, "" for the whole body. Its errors are
// problems of a kind.
func newObject(kind *problemKind, field string, raw json.RawMessage) *object {
	o := &object{kind: kind, members: make(map[string]json.RawMessage)}
	if field != "" {
		o.prefix = field + "."
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		o.err = &problem{kind: kind, field: field, detail: fmt.Sprintf("got %.40s, want an object", raw)}
		return o
	}
	for d.More() {
		o.readMember(d)
		if o.err != nil {
			return o
		}
	}
	return o
}

// readMember refuses a name that was there before: which of the two counts, other programs see
// otherwise.
func (o *object) readMember(d *json.Decoder) {
	token, err := d.Token()
	name, _ := token.(string)
	var value json.RawMessage
	if err == nil {
		err = d.Decode(&value)
	}
	if err != nil {
		o.fail(name, "%v", err)
		return
	}
	if _, twice := o.members[name]; twice {
		o.fail(name, "it is there twice")
	}
	o.members[name] = value
}

func (o *object) fail(name, format string, args ...any) { o.refuse(name, nil, format, args...) }

// refuse is fail with the error that it is for programs that embed partita.
func (o *object) refuse(name string, cause error, format string, args ...any) {
	if o.err == nil {
		o.err = &problem{kind: o.kind, field: o.prefix + name, cause: cause, detail: fmt.Sprintf(format, args...)}
	}
}

func (o *object) has(name string) bool { return o.members[name] != nil }

// take returns a member, nil if it is not there.
func (o *object) take(name string) json.RawMessage {
	raw := o.members[name]
	delete(o.members, name)
	return raw
}

// end returns the first error. It is one if there are members that nobody has taken.
func (o *object) end() error {
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		o.fail(name, "unknown member")
	}
	return o.err
}

// member takes a member; there is false if it is not there.
func member[T any](o *object, name, want string) (value T, there bool) {
	raw := o.take(name)
	if raw == nil {
		return value, false
	}
	if err := json.Unmarshal(raw, &value); err != nil || string(raw) == "null" {
		o.fail(name, "got %.40s, want %s", raw, want)
	}
	return value, true
}

// textMember takes a member that is a string, and parses it.
func textMember[T any](o *object, name string, parse func(string) (T, error)) (value T, there bool) {
	text, there := member[string](o, name, "a string")
	if !there || o.err != nil {
		return value, there
	}
	value, err := parse(text)
	if err != nil {
		o.fail(name, "%v", err)
	}
	return value, true
}

// each takes a member that is an array of objects, and reads one after the other, up to the
// first error.
func (o *object) each(name string, read func(*object)) {
	list := o.take(name)
	if list == nil {
		return
	}
	d := json.NewDecoder(bytes.NewReader(list))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		o.fail(name, "got %.40s, want an array", list)
	}
	for i := 0; o.err == nil && d.More(); i++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			o.fail(name, "%v", err)
			return
		}
		inner := newObject(o.kind, fmt.Sprintf("%s%s[%d]", o.prefix, name, i), raw)
		read(inner)
		o.err = inner.end()
	}
}

// content takes what is stored of a JSON value or, if its name says so, of bytes in base64.
// Of the same value that is always the same.
func (o *object) content(name string) []byte {
	value := o.take(name)
	decoded, isBase64 := textMember(o, name+"_base64", base64.StdEncoding.Strict().DecodeString)
	if isBase64 && value != nil {
		o.fail(name, "got both %s and %s_base64, want one of them", name, name)
	}
	if isBase64 || value == nil {
		return decoded
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		o.fail(name, "%v", err)
	}
	return compact.Bytes()
}
