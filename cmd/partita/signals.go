package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/partita-go/partita/cmd/internal/cli"
)

// interruptible returns a context that ends with the first signal, which is gentle: a server finishes requests and flushes,
// a copy is taken away. A second SIGINT or SIGTERM ends the program at once. A terminal that is closed may send SIGHUP
// twice: that means no hurry. It never ends a server, which reads its configuration again: before it has read one, there
// is nothing to do.
func interruptible(server bool) (ctx context.Context, stop func()) {
	gentle := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	if server {
		signal.Ignore(syscall.SIGHUP)
		gentle = gentle[:2]
	}
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, gentle...)
	go func() {
		<-signals
		cancel()
		for again := range signals {
			if again != syscall.SIGHUP {
				endAtOnce(again)
			}
		}
	}()
	return ctx, func() { signal.Stop(signals) }
}

// isServe reports whether arguments of the program call for a server.
func isServe(args []string) bool { return len(args) > 0 && args[0] == "serve" }

func endAtOnce(s os.Signal) {
	name := "SIGTERM"
	if s == os.Interrupt {
		name = "SIGINT"
	}
	_, _ = fmt.Fprintf(os.Stderr, "partita: ended at once by %s, the second signal. What was acknowledged is kept; the next start replays what was not flushed\n", name)
	os.Exit(cli.AtOnce)
}
