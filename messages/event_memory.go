package messages

// What the parts of an event take in memory besides their bytes, about.
const (
	eventMemory   = 216
	numberMemory  = 16
	recordMemory  = 48
	sectionMemory = 32
)

// Memory estimates how many bytes the event takes in memory, which can be far more than in a
// store: 131,072 numbers of one sequence take a few bytes there, and 2 MiB here.
func (e *Event) Memory() int {
	n := eventMemory + numberMemory*(len(e.Numbers)+len(e.Moves)) + len(e.Body)
	for i := range e.Records {
		n += recordMemory + len(e.Records[i].Data)
	}
	for i := range e.Sections {
		n += sectionMemory + len(e.Sections[i].Data)
	}
	return n
}
