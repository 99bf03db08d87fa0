package process

import (
	"os/exec"
	"syscall"
)

// EndWithParent lets the kernel kill the child when its parent dies.
func EndWithParent(command *exec.Cmd) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = new(syscall.SysProcAttr)
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
