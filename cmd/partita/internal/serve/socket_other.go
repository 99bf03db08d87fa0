//go:build !unix

package serve

import (
	"errors"
	"net"
)

// There are sockets on Windows, too, but everybody may open them.
const (
	privateSockets = false
	maxSocketPath  = 0
)

func listenPrivately(string) (*net.UnixListener, error) { return nil, errors.ErrUnsupported }
