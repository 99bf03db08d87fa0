//go:build nopeers

package command

import (
	"context"
	"io"
)

// servers are what this program can be besides: nothing.
var servers map[string]func(ctx context.Context, dir string, stdout io.Writer) error
