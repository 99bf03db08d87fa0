package base

import (
	"math"
	"testing"

	"github.com/partita-go/partita/internal/quiet"
)

func newTestPorts(t *testing.T) *Ports {
	t.Helper()
	ports := NewPorts(quiet.NewSystem())
	t.Cleanup(ports.Close)
	return ports
}

func (p *Ports) mustTake(t *testing.T) *port {
	t.Helper()
	port, err := p.take()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// A port is thrown away before the numbers of its questions begin anew.
func TestPortsThrowAwayAPortWithoutNumbersLeft(t *testing.T) {
	ports := newTestPorts(t)
	port := ports.mustTake(t)
	port.number = math.MaxUint32 - 2
	for range 2 {
		port.question(nil, nil)
		port.close()
		ports.put(port)
		if port.number < math.MaxUint32 && ports.mustTake(t) != port {
			t.Fatal("thrown away too early")
		}
	}
	if ports.mustTake(t) == port {
		t.Error("the port is used again")
	}
	if _, registered := ports.system.ProcessRegistry.Get(port.pid); registered {
		t.Error("the port is still registered")
	}
}

func TestPortsKeepABoundedNumber(t *testing.T) {
	ports := newTestPorts(t)
	var used []*port
	for range maxIdlePorts + 10 {
		used = append(used, ports.mustTake(t))
	}
	for _, port := range used {
		ports.put(port)
	}
	if n := len(ports.idle); n != maxIdlePorts {
		t.Errorf("got %d idle ports, want %d", n, maxIdlePorts)
	}
}
