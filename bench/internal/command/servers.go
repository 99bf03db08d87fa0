//go:build !nopeers

package command

import (
	"context"
	"io"

	"github.com/partita-go/partita/bench/internal/natsserver"
)

// servers are what this program can be besides, for rows that start it so.
var servers = map[string]func(ctx context.Context, dir string, stdout io.Writer) error{
	natsserver.Command: natsserver.Run,
}
