// Package subscription is the pure state machine of one lane of a subscription: what
// delivers the events of one log, a partition's or a workspace's, in their order. It knows
// no actor, storage, clock or goroutine: [Lane.Step] takes a message, and returns the effects
// that the shell has to carry out.
//
//	loading ──> waiting ──> reading ──> handling ──> storing
//	   ^           ^                     │    ^          │
//	   │           └─────────────────────┼────┼──────────┤
//	   │ release                         └ retrying <────┘
//	   │
//	  held <── hold, from every state      halted, failed: until somebody resumes it
//
// One function per state (states.go) says which message is legal when. At most one piece of
// work is under way, and it has a number: the answer to an earlier one is ignored.
//
// What keeps the promise is the order: a batch is handed over, then it is made durable how
// far it was handled, and only then is the next one handed over. So what follows the stored
// position was not handled or is that one batch, and nothing before it was left out.
//
// Whoever changes where a subscription stands holds its lanes, changes what the store says,
// and releases them: a lane that is released asks the store again. The store is the truth;
// what a lane knows is a copy.
package subscription
