package httpclient

import "errors"

// ErrOptions is returned when the address of a server or an option is wrong. The error says which.
//
// From: httpclient.New.
// Do: correct it.
var ErrOptions = errors.New("bad option of a client")

var (
	// errSlow is why a try ends that takes longer than the option Timeout.
	errSlow = errors.New("the server has not answered in time")
	// errSilent is why a stream is opened anew of which nothing comes, not even what says that there is nothing new.
	errSilent = errors.New("nothing has come from the server for too long")
	// errBroken is why a stream is opened anew that has ended: a server that stops ends it.
	errBroken = errors.New("the stream has ended")
)
