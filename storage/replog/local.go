package replog

import "context"

type localKey struct{}

// Local lets reads take what the replica here has, on whichever node that is, without asking whether this node leads: a
// prefix of the log, which may be late.
func Local(ctx context.Context) context.Context { return context.WithValue(ctx, localKey{}, true) }

// IsLocal reports whether a context is one of [Local].
func IsLocal(ctx context.Context) bool { return ctx.Value(localKey{}) != nil }
