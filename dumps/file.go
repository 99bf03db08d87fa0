package dumps

import (
	"fmt"
	"io/fs"
	"os"
)

// openFile opens a file to write behind what is there, and takes it for this writer alone. It returns nil if it is the
// one that the writer has already. What is no file may be a device, as /dev/full is: a directory cannot be written to,
// and a pipe would wait for its reader.
func openFile(path string, before file) (file, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|nonBlocking, 0o600)
	if err != nil {
		if info, ofName := os.Stat(path); ofName == nil && !isForDump(info) {
			return nil, notForDump(path, info)
		}
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !isForDump(info):
		err = notForDump(path, info)
	case isSame(info, before):
		return nil, f.Close()
	case info.Mode().IsRegular() && !lock(f):
		err = fmt.Errorf("%w: %s: another process, or another dump of this one, writes to it", ErrFile, path)
	default:
		return f, nil
	}
	_ = f.Close() // nothing was written
	return nil, err
}

func isForDump(info fs.FileInfo) bool {
	return info.Mode().IsRegular() || info.Mode()&fs.ModeCharDevice != 0
}

func notForDump(path string, info fs.FileInfo) error {
	kind := "a file of another kind"
	switch mode := info.Mode(); {
	case mode.IsDir():
		kind = "a directory"
	case mode&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case mode&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return fmt.Errorf("%w: %s: got %s, want a regular file", ErrFile, path, kind)
}

// isSame reports whether a file is the one that was opened before.
func isSame(info fs.FileInfo, before file) bool {
	f, ok := before.(*os.File)
	if !ok {
		return false
	}
	its, err := f.Stat()
	return err == nil && os.SameFile(info, its)
}
