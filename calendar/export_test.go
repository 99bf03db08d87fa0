package calendar

// ForgetUnknown lets nobody remember an unknown zone, until what it returns is called.
func ForgetUnknown() (restore func()) {
	before := setUnknown(make(map[string]bool))
	return func() { setUnknown(before) }
}

// SetUnknown lets it be remembered that there is no zone of a name, as if nobody had found it yet.
func SetUnknown(name string) {
	zones.Lock()
	defer zones.Unlock()
	delete(zones.loaded, name)
	zones.unknown[name] = true
}

func setUnknown(names map[string]bool) (before map[string]bool) {
	zones.Lock()
	defer zones.Unlock()
	before, zones.unknown = zones.unknown, names
	return before
}
