// Demo runs a real history as an application, kills it in the middle, recovers
// and checks it. `demo help` says what else it can do.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/partita-go/partita/cmd/demo/internal/demo"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	status := demo.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
