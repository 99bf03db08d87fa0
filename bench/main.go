// Bench measures how fast durable events can be appended: by partita, by the bare
// disk, and by what else one would use. `bench help` says more.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/partita-go/partita/bench/internal/command"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status := command.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
