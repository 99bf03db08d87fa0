package queue

// Serve serves what comes until the store is closing, and then what was handed over
// before. It ends early when serve returns false.
func Serve[R any](queue <-chan R, closing <-chan struct{}, serve func(R) bool) {
	for {
		select {
		case r := <-queue:
			if !serve(r) {
				return
			}
		case <-closing:
			ServeRest(queue, serve)
			return
		}
	}
}

// ServeRest serves what waits.
func ServeRest[R any](queue <-chan R, serve func(R) bool) {
	for {
		select {
		case r := <-queue:
			if !serve(r) {
				return
			}
		default:
			return
		}
	}
}
