//go:build !linux

package bolt

import "os"

func openDirect(string, int) (*os.File, []byte) { return nil, nil }

func closeDirect(*os.File, []byte) {}
