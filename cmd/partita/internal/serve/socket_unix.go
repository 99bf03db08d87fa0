//go:build unix

package serve

import (
	"context"
	"net"
	"syscall"
)

// privateSockets says that the mode of a socket decides who may open it.
const privateSockets = true

// maxSocketPath is how long the path of a socket can be, in bytes: a zero follows it.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// listenPrivately makes a socket. Linux gives it the mode that it has before it gets its name, so that there is no time
// in which others may open it.
func listenPrivately(path string) (*net.UnixListener, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			_ = syscall.Fchmod(int(fd), 0o600) // it gets the mode afterwards, too
		})
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil //nolint:errcheck // that is what it is
}
