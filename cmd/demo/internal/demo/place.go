package demo

import (
	"fmt"
	"os"
)

// place is a store's directory: the one that was named, or a temporary one.
type place struct {
	dir       string
	temporary bool
}

// findPlace returns the directory, made if it is temporary. end removes it then.
func findPlace(named string, keep bool) (p place, end func() error, err error) {
	if named != "" {
		return place{dir: named}, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "partita-demo-")
	if err != nil {
		return place{}, nil, fmt.Errorf("no room for a temporary store: %w", err)
	}
	if keep {
		return place{dir: dir}, func() error { return nil }, nil
	}
	return place{dir: dir, temporary: true}, func() error { return os.RemoveAll(dir) }, nil
}
