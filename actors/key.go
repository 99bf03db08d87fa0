package actors

// Key identifies an actor by its group and its key within the group, like
// {"partition", "7"}. Observers, metrics and dumps know actors by it.
type Key struct{ Group, ID string }

// String returns the key as "group/id".
func (k Key) String() string { return k.Group + "/" + k.ID }
