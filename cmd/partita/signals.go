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
// twice: that means no hurry.
func interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
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

func endAtOnce(s os.Signal) {
	name := "SIGTERM"
	if s == os.Interrupt {
		name = "SIGINT"
	}
	_, _ = fmt.Fprintf(os.Stderr, "partita: ended at once by %s, the second signal. What was acknowledged is kept; the next start replays what was not flushed\n", name)
	os.Exit(cli.AtOnce)
}
