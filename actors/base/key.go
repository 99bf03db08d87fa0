package base

import "strings"

// Key identifies an actor by its group and its key within the group, like
// {"partition", "7"}. Observers, metrics and dumps know actors by it.
type Key struct{ Group, ID string }

// String returns the key as "group/id".
func (k Key) String() string { return k.Group + "/" + k.ID }

// membersOf is how the names begin of the groups of actors that are members of a group of command processors.
const membersOf = "group-"

// MemberKey returns the key of a member of a group of command processors, without its ID.
func MemberKey(group string) Key { return Key{Group: membersOf + group} }

// IsMember reports whether an actor is a member of a group of command processors.
func (k Key) IsMember() bool { return strings.HasPrefix(k.Group, membersOf) }
