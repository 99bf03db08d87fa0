// Partita looks after the store of an application: it checks, shows, copies. `partita
// help` says how.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/partita-go/partita/cmd/partita/internal/operate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status := operate.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
