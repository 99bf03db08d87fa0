//go:build cgo

package rows

const withCgo = true
