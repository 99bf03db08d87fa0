//go:build nopeers

package trio

import (
	"context"
	"errors"
)

// errWithout is returned where this program was built without peers.
var errWithout = errors.New("this program was built without peers (tag nopeers)")

func without(context.Context, config) (system, error) { return nil, errWithout }

var newNATS, newEtcd = without, without
