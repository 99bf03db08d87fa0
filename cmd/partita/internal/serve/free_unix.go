//go:build linux || darwin || freebsd

package serve

import "syscall"

// freeBytes returns how much room a directory's file system has for whoever is not root, if that is known.
func freeBytes(dir string) (free uint64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return uint64(s.Bavail) * uint64(s.Bsize), true //nolint:unconvert // systems have other types
}
