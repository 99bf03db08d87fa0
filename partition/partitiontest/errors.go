package partitiontest

import "errors"

var (
	// errInjected is what a fault says.
	errInjected = errors.New("injected by the test")
	// errPatience says that something did not happen in time.
	errPatience = errors.New("waited in vain")
)
