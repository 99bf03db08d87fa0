//go:build !unix

package main

import "os/exec"

// killTogether does nothing: there are no groups of processes.
func killTogether(*exec.Cmd) {}
