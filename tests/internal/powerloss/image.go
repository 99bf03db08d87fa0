package powerloss

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
)

// Loss is what becomes of the writes of a file that are not durable.
type Loss uint8

// The losses.
const (
	// LoseAll: all are lost.
	LoseAll Loss = iota
	// LoseNone: all are there.
	LoseNone
	// LoseEnd: those from some point on are lost, and the one at that point is torn.
	LoseEnd
	// LoseSectors: each sector of 512 bytes holds any of its versions.
	LoseSectors
	// LosePages: each page of 4,096 bytes holds any of its versions.
	LosePages
	// LoseBeginning: only the last one is there.
	LoseBeginning
	// Losses is how many there are.
	Losses
)

func (l Loss) String() string {
	names := [Losses]string{"all", "none", "end", "sectors", "pages", "beginning"}
	if l >= Losses {
		return fmt.Sprintf("loss %d", uint8(l))
	}
	return names[l]
}

const (
	sector = 512
	page   = 4096
)

// content is what a file holds.
type content struct {
	size int64
	// pages are those that hold anything. They are shared: never written in place.
	pages map[int64][]byte
}

// newContent makes the content of a file. Pages of zeros are left out: bbolt keeps
// millions of bytes of them at the end.
func newContent(data []byte) *content {
	c := &content{pages: make(map[int64][]byte)}
	at := int64(0)
	for part := range slices.Chunk(data, page) {
		if !bytes.Equal(part, zeros[:len(part)]) {
			c.write(at, part)
		}
		at += page
	}
	c.size = int64(len(data))
	return c
}

var zeros [page]byte

// Copy copies the files of a directory into another one, without writing their pages of
// zeros.
func Copy(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if err := newContent(data).save(filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (c *content) clone() *content { return &content{size: c.size, pages: maps.Clone(c.pages)} }

func (c *content) write(at int64, data []byte) {
	c.size = max(c.size, at+int64(len(data)))
	for len(data) > 0 {
		n, begin := at/page, at%page
		fresh := make([]byte, page)
		copy(fresh, c.pages[n])
		done := copy(fresh[begin:], data)
		c.pages[n] = fresh
		at, data = at+int64(done), data[done:]
	}
}

// apply makes a change. A size makes a file smaller if it was meant to: else a write that is
// further behind may be durable already.
func (c *content) apply(ch *change) {
	switch {
	case ch.cut:
		c.cut(ch.at)
	case ch.data == nil:
		c.size = max(c.size, ch.at)
	default:
		c.write(ch.at, ch.data)
	}
}

// cut gives a file a size: what was behind it is gone, also when the file grows again.
func (c *content) cut(size int64) {
	c.size = size
	for n, data := range c.pages {
		switch kept := size - n*page; {
		case kept <= 0:
			delete(c.pages, n)
		case kept < page:
			c.pages[n] = append(bytes.Clone(data[:kept]), zeros[kept:]...)
		}
	}
}

func (c *content) save(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for n, data := range c.pages {
		if _, err := f.WriteAt(data, n*page); err != nil {
			_ = f.Close()
			return err
		}
	}
	if err := f.Truncate(c.size); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// Moment is where a history is cut.
type Moment struct {
	history *History
	place   int
	files   map[*node]*cutFile
}

// cutFile is a file at a moment.
type cutFile struct {
	// durable is what cannot be lost.
	durable *content
	// The changes before next have begun. Those of them that are not durable are open.
	next int
	open []int
	// newest are the last changes that are durable, by sector: what is older is
	// overwritten for good.
	newest map[int64]int
}

// Begin returns the moment before everything.
func (h *History) Begin() *Moment {
	m := &Moment{history: h, files: make(map[*node]*cutFile)}
	for _, n := range h.nodes {
		m.files[n] = &cutFile{durable: n.base.clone(), newest: make(map[int64]int)}
	}
	return m
}

// Advance goes on to a later place.
func (m *Moment) Advance(place int) {
	m.place = place
	for n, f := range m.files {
		for ; f.next < len(n.changes) && n.changes[f.next].begin < place; f.next++ {
			f.open = append(f.open, f.next)
		}
		open := f.open[:0]
		for _, i := range f.open {
			if n.changes[i].durable >= place {
				open = append(open, i)
				continue
			}
			for _, part := range f.visible(n, i) {
				f.durable.apply(&part)
				f.newest[part.at/sector] = i
			}
		}
		f.open = open
	}
}

// visible returns a change as far as it is not overwritten for good, by sector.
func (f *cutFile) visible(n *node, i int) []change {
	ch := &n.changes[i]
	if ch.data == nil {
		return []change{*ch}
	}
	var parts []change
	for at, part := range ch.units(sector) {
		if newest, ok := f.newest[at]; !ok || newest < i {
			parts = append(parts, part)
		}
	}
	return parts
}

// losable are the changes of a file that can be lost now.
func (m *Moment) losable(n *node) []change {
	f := m.files[n]
	var losable []change
	for _, i := range f.open {
		losable = append(losable, f.parts(n, i)...)
	}
	return losable
}

// parts are a change that can be lost. It is cut into sectors if a part of it is
// overwritten for good.
func (f *cutFile) parts(n *node, i int) []change {
	parts := f.visible(n, i)
	if ch := &n.changes[i]; len(ch.data) == covered(parts) {
		return []change{*ch}
	}
	return parts
}

func covered(parts []change) (n int) {
	for i := range parts {
		n += len(parts[i].data)
	}
	return n
}

// Losable counts the writes that can be lost now.
func (m *Moment) Losable() int {
	count := 0
	for _, n := range m.history.nodes {
		count += len(m.losable(n))
	}
	return count
}

// Write writes an image into an empty directory: of each file as much is lost as is drawn
// for it alone. It returns what that was.
func (m *Moment) Write(dir string, random *rand.Rand) (map[string]Loss, error) {
	losses := make(map[string]Loss)
	written := make(map[*node]*content)
	names := m.names(random)
	for _, name := range slices.Sorted(maps.Keys(names)) { // the same for the same seed
		n := names[name]
		if written[n] == nil {
			losses[name] = Loss(random.IntN(int(Losses)))
			written[n] = m.image(n, losses[name], random)
		}
		if err := written[n].save(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return losses, nil
}

// names are the names of an image: those that are durable, and some of the changes since.
func (m *Moment) names(random *rand.Rand) map[string]*node {
	names, open := m.named()
	rename(names, open[:random.IntN(len(open)+1)])
	return names
}

// named returns the names that are durable, and the changes of them that are not.
func (m *Moment) named() (names map[string]*node, open []change) {
	names = maps.Clone(m.history.base)
	begun := m.history.names
	begun = begun[:sort.Search(len(begun), func(i int) bool { return begun[i].begin >= m.place })]
	kept := 0
	for kept < len(begun) && begun[kept].durable < m.place {
		kept++
	}
	rename(names, begun[:kept])
	return names, begun[kept:]
}

func rename(names map[string]*node, changes []change) {
	for _, ch := range changes {
		if ch.node == nil {
			delete(names, ch.name)
		} else {
			names[ch.name] = ch.node
		}
	}
}

// image returns what a file may hold.
func (m *Moment) image(n *node, loss Loss, random *rand.Rand) *content {
	image := m.files[n].durable.clone()
	at := m.losable(n)
	if len(at) == 0 {
		return image
	}
	switch loss {
	case LoseAll, Losses:
	case LoseNone:
		for i := range at {
			image.apply(&at[i])
		}
	case LoseBeginning:
		image.apply(&at[len(at)-1])
	case LoseEnd:
		last := random.IntN(len(at))
		for i := range at[:last] {
			image.apply(&at[i])
		}
		image.tear(&at[last], random)
	case LoseSectors:
		image.mix(at, sector, random)
	case LosePages:
		image.mix(at, page, random)
	}
	return image
}

// tear applies the beginning of a change.
func (c *content) tear(ch *change, random *rand.Rand) {
	if ch.data == nil {
		return
	}
	end := (ch.at + random.Int64N(int64(len(ch.data)))) / sector * sector
	if end > ch.at {
		c.write(ch.at, ch.data[:end-ch.at])
	}
}

// mix gives each unit any of the versions that it had, from the one before all changes to
// the one behind them.
func (c *content) mix(changes []change, unit int64, random *rand.Rand) {
	versions := make(map[int64]int)
	for i := range changes {
		for n := range changes[i].units(unit) {
			versions[n]++
		}
	}
	kept := make(map[int64]int, len(versions))
	for i := range changes {
		if changes[i].data == nil {
			if random.IntN(2) == 0 {
				c.apply(&changes[i])
			}
			continue
		}
		for n, part := range changes[i].units(unit) {
			if _, drawn := kept[n]; !drawn {
				kept[n] = random.IntN(versions[n] + 1)
			}
			if kept[n] > 0 {
				kept[n]--
				c.write(part.at, part.data)
			}
		}
	}
}

// units cuts a write into the parts that lie in one unit each.
func (ch *change) units(unit int64) func(func(int64, change) bool) {
	return func(yield func(int64, change) bool) {
		for at, data := ch.at, ch.data; len(data) > 0; {
			n := at / unit
			size := min(int64(len(data)), (n+1)*unit-at)
			if !yield(n, change{at: at, data: data[:size]}) {
				return
			}
			at, data = at+size, data[size:]
		}
	}
}
