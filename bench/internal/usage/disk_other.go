//go:build !linux

package usage

import "errors"

// DiskWritten fails: only Linux tells.
func DiskWritten(string) (int64, error) { return 0, errors.ErrUnsupported }
