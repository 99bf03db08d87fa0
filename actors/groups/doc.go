// Package groups puts several command processors behind one handle.
//
// Whoever sends a command calls the group's router, on his own goroutine: it chooses the members that get the command.
// The members are actors, each with a bounded request lane of its own.
//
// # By the workspace
//
// The router that is used if there is no other sends a command to one member:
//
//  1. If commands of the workspace are under way at a member, in its lane or in its hands, to that one.
//  2. Else to the member that [MemberOf] says, of as many as there are.
//
// So the commands of a workspace are carried out in the order in which they were taken, one after the other, and never
// two of them at the same time, however often the number of members changes meanwhile. Commands that several
// goroutines send at the same time have no order.
//
// # Resizing
//
//   - When the group grows, a workspace goes to its new member as soon as nothing of it is under way at the old one.
//   - When it shrinks, the members with the highest numbers leave. They carry out what they have, and then they end. A
//     workspace that has nothing under way there goes to its new member at once. One that has goes there when that is
//     done: until then Ask waits, and TryAsk and Tell are answered with ErrBusy.
//   - No command that was taken is lost, or answered otherwise than without a resize.
//
// With a router of the caller's a command goes where that says. Commands at one member keep their order; what is under
// way at a member that leaves can be overtaken by what the router sends to others.
package groups
