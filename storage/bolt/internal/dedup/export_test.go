package dedup

// BeginHeld begins to read what the runs have, and lets no layer be made before it is released.
func (f *Filter) BeginHeld() (release func()) {
	f.mu.Lock()
	f.begun.Store(true)
	f.filled = make(chan struct{})
	go f.fill()
	return f.mu.Unlock
}
