// Package faulty has a disk and files that fail, or wait, where a test wants. Only tests use it.
package faulty
