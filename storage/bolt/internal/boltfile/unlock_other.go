//go:build !unix || aix || solaris

package boltfile

import "os"

// unlock is for systems where the lock ends with the file.
func unlock(*os.File) error { return nil }
