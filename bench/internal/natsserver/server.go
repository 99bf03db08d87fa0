//go:build !nopeers

// Package natsserver is a NATS server with JetStream on file storage, synced
// after every message. It runs in a process of its own.
package natsserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Command is the argument that makes this program the server; the directory of
// its storage follows.
const Command = "nats-server"

// readyLimit is how long the server may take to start.
const readyLimit = 30 * time.Second

// Run serves until the context ends. It prints the URL for clients when it is
// ready.
func Run(ctx context.Context, dir string, stdout io.Writer) error {
	s, err := server.NewServer(&server.Options{
		ServerName: "bench",
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   dir,
		SyncAlways: true,
		NoSigs:     true,
	})
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(readyLimit) {
		return errors.New("it is not ready for connections")
	}
	if _, err := fmt.Fprintln(stdout, s.ClientURL()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
