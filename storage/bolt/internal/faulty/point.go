package faulty

import "sync"

// Point is where a test comes between. The zero Point lets everything pass. It can be set while others pass.
type Point struct {
	mu sync.Mutex
	do func() error
}

// Set lets do be called from now on. What it returns is what fails there; nil lets everything pass.
func (p *Point) Set(do func() error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do = do
}

// Fail lets nothing pass.
func (p *Point) Fail(err error) { p.Set(func() error { return err }) }

// Clear lets everything pass.
func (p *Point) Clear() { p.Set(nil) }

// Hold lets the first one wait until proceed is closed, and everything pass after that. entered is closed when it
// is there.
func (p *Point) Hold() (entered <-chan struct{}, proceed chan<- struct{}) {
	there, goOn := make(chan struct{}), make(chan struct{})
	p.Set(func() error {
		p.Clear()
		close(there)
		<-goOn
		return nil
	})
	return there, goOn
}

// HoldAll lets everybody wait until release is called: at the end of the test, if not before.
func (p *Point) HoldAll(t interface{ Cleanup(func()) }) (release func()) {
	goOn := make(chan struct{})
	p.Set(func() error {
		<-goOn
		return nil
	})
	release = sync.OnceFunc(func() {
		p.Clear()
		close(goOn)
	})
	t.Cleanup(release)
	return release
}

// pass is called by whoever comes there.
func (p *Point) pass() error {
	p.mu.Lock()
	do := p.do
	p.mu.Unlock()
	if do == nil {
		return nil
	}
	return do()
}
