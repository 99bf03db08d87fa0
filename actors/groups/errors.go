package groups

import (
	"errors"
	"fmt"
)

// Errors of groups of command processors.
var (
	// ErrNoMember is returned when the router of a group chose no member for a command. Nobody has got it.
	//
	// From: Ask, AskEach and Tell of a Group.
	// Do: what the program means by it: the router is its own.
	ErrNoMember = errors.New("the router chose no member of the group")
	// ErrRoute is returned when what the router of a group chose cannot be: a member that the group has not, or several
	// for a question that has one answer. Nobody has got the command.
	//
	// From: Ask, TryAsk, AskEach and Tell of a Group.
	// Do: mend the router: the members count from 0. Ask several with AskEach.
	ErrRoute = errors.New("the router's choice cannot be")
)

// MemberError says which member of a group has not taken a command that it was told.
//
// From: Tell of a Group, once for each such member.
// Do: what its cause says, for that member: the others have the command.
type MemberError struct {
	Member int
	Err    error
}

func (e *MemberError) Error() string { return fmt.Sprintf("member %d: %v", e.Member, e.Err) }

// Unwrap returns the cause.
func (e *MemberError) Unwrap() error { return e.Err }
