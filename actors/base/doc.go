// Package base is what the actors stand on. It replaces parts of Proto.Actor that do not fit:
//
//   - [Mailbox]: two lanes instead of one unbounded queue. Control messages
//     are never refused; requests are refused at once when their lane is full, or
//     wait. Whatever is left when the actor stops is answered.
//   - [Dispatcher]: goroutines with warm stacks instead of a fresh one a wake-up; none at
//     all where the sender of a message waits for the answer and can do the work.
//   - [Ports]: reply addresses that are used again instead of futures.
//   - [NewGuardian] and [EscalateToParent]: supervision that answers whoever waits,
//     backs off and never ends the process.
//   - [Clock] and [Observer]: time is a setting, and every message can be seen.
//
// # Handlers of the life cycle
//
// A panic while an actor handles Stopping or Stopped keeps it from ending, and its
// parent waits for ever: recover there. Restarting can come twice to the same
// incarnation, if its successor could not be made.
package base
