// Partita looks after the store of an application: it checks, shows, copies, serves. `partita
// help` says how.
package main

import (
	"os"

	"github.com/partita-go/partita/cmd/partita/internal/operate"
)

func main() {
	ctx, stop := interruptible(isServe(os.Args[1:]))
	status := operate.Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
