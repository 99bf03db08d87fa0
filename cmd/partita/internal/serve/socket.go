package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"go.uber.org/zap"
)

// SocketName is the name of the socket in the directory of a store that is served. Only the owner of the directory's
// files may open it, who could read the files themselves: so it needs no token.
const SocketName = "partita.sock"

// ErrNoSocket is returned when a store's directory cannot have a socket.
var ErrNoSocket = errors.New("there can be no socket")

// SocketPath returns where the socket of a store's directory is. It returns ErrNoSocket where the system has none
// that only the owner may open, or the path is too long for one.
func SocketPath(dir string) (string, error) {
	if !privateSockets {
		return "", fmt.Errorf("%w on %s", ErrNoSocket, runtime.GOOS)
	}
	path := filepath.Join(dir, SocketName)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("%w at %s: the path has %d bytes, that of a socket at most %d", ErrNoSocket, path, len(path), maxSocketPath)
	}
	return path, nil
}

// socket is where the operator asks who may read the store's files.
type socket struct {
	*net.UnixListener
	path string
	made os.FileInfo
}

// listenSocket makes the socket of a store's directory. The store must be open for writing: so whatever socket is
// there, nobody listens to it any more.
func listenSocket(dir string) (*socket, error) {
	path, err := SocketPath(dir)
	if err != nil {
		return nil, err
	}
	switch there, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case there.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("%w: %s is no socket, and is left as it is", ErrNoSocket, path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := listenPrivately(path)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // there may be another one by then
	s := &socket{UnixListener: l, path: path}
	err = os.Chmod(path, 0o600)
	if err == nil {
		s.made, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return s, nil
}

// remove removes the socket, unless the directory is another one by now.
func (s *socket) remove() error {
	there, err := os.Lstat(s.path)
	if err != nil || !os.SameFile(there, s.made) {
		return nil //nolint:nilerr // it is gone with its directory
	}
	return os.Remove(s.path)
}

// startSocket makes the socket of a store, nil if there can be none: the server is worth something without it.
func (s *server) startSocket(dir string) *socket {
	l, err := listenSocket(dir)
	if err != nil {
		s.logger.Named("serve").Warn("there is no socket for commands with --db, they can ask with --url", zap.Error(err))
		return nil
	}
	return l
}
