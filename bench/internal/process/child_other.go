//go:build !linux

package process

import "os/exec"

// EndWithParent does nothing: only Linux can do it.
func EndWithParent(*exec.Cmd) {}
