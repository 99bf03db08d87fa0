package cluster

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// wires are what is between the processes: each node is told an address of its own for each other one, where bytes are passed
// on, or held.
type wires struct {
	addresses map[direction]string

	mu  sync.Mutex
	cut map[direction]chan struct{}
}

// direction is from a node to another one.
type direction struct{ from, to string }

func newWires(t testing.TB, nodes map[string]*process) *wires {
	w := &wires{addresses: make(map[direction]string), cut: make(map[direction]chan struct{})}
	for _, from := range names {
		for _, to := range names {
			d := direction{from, to}
			if from == to {
				w.addresses[d] = nodes[to].peer
				continue
			}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			check(t, err)
			w.addresses[d] = l.Addr().String()
			peer := nodes[to].peer
			var all sync.WaitGroup
			all.Go(func() { w.accept(l, d, peer, &all) })
			t.Cleanup(func() {
				w.heal(d)
				_ = l.Close()
				all.Wait()
			})
		}
	}
	return w
}

// peersOf is what a node is told of all.
func (w *wires) peersOf(name string) string {
	var all []string
	for _, to := range names {
		d := direction{name, to}
		if w.addresses[d] == "" { // of a node that has joined
			d.from = to
		}
		all = append(all, to+"="+w.addresses[d])
	}
	return strings.Join(all, ",")
}

// accept passes streams on, until the listener is closed; the processes are dead by then.
func (w *wires) accept(l net.Listener, d direction, to string, all *sync.WaitGroup) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", to)
		if err != nil {
			_ = near.Close()
			continue
		}
		var both sync.WaitGroup
		both.Go(func() { w.pass(far, near, d) })
		both.Go(func() { w.pass(near, far, direction{d.to, d.from}) })
		all.Go(func() {
			both.Wait()
			_ = errors.Join(near.Close(), far.Close())
		})
	}
}

// pass passes bytes on that go in a direction, when that is not cut. Who is gone on one side is gone on the other.
func (w *wires) pass(to, from net.Conn, d direction) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if healed := w.healed(d); healed != nil {
			<-healed
		}
		if _, failed := to.Write(b[:n]); failed != nil || err != nil {
			if errors.Is(err, io.EOF) && failed == nil {
				if half, ok := to.(interface{ CloseWrite() error }); ok {
					_ = half.CloseWrite()
				}
				return
			}
			_ = errors.Join(to.Close(), from.Close())
			return
		}
	}
}

func (w *wires) healed(d direction) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut[d]
}

// hold holds what goes in a direction until heal.
func (w *wires) hold(d direction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut[d] == nil {
		w.cut[d] = make(chan struct{})
	}
}

func (w *wires) heal(d direction) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if healed := w.cut[d]; healed != nil {
		close(healed)
		delete(w.cut, d)
	}
}
