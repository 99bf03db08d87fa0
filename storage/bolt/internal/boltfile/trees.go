package boltfile

import (
	"bytes"
	"encoding/binary"
)

// down checks a page whose first key must be least, and whose keys must lie before end, and
// all pages below it. Nil is no bound.
func (w *walk) down(id uint64, least, end []byte, depth int) error {
	page, err := w.first(id, depth)
	if err == nil {
		page, err = w.whole(id, page, depth)
	}
	if err != nil {
		return err
	}
	n, room := PageCount(page), (len(page)-PageHeaderLen)/PageElementLen
	switch flags := PageFlags(page); {
	case n > room:
		return w.faulty(id, "it has %d entries, there is room for %d", n, room)
	case flags != PageBranch && flags != PageLeaf:
		return w.faulty(id, "got flags %#x, want those of a branch or a leaf", flags)
	case flags == PageBranch && n == 0:
		return w.faulty(id, "it refers to no page")
	}
	if w.upper {
		if err := w.checkRoom(id, page); err != nil {
			return err
		}
	}
	return w.entries(id, page, least, end, depth)
}

// entries checks the entries of a page, and all below them. A fault of a page below does not keep
// the others from being checked.
func (w *walk) entries(id uint64, page, least, end []byte, depth int) error {
	n, branch := PageCount(page), PageFlags(page) == PageBranch
	for i := range n {
		key, value, err := w.entry(id, page, i)
		if err != nil {
			return err
		}
		if err := w.checkKey(id, i, key, least, end); err != nil {
			return err
		}
		e := page[elementAt(i):]
		flags := binary.NativeEndian.Uint32(e)
		switch {
		case branch:
			next := end
			if i+1 < n {
				if next, _, err = w.entry(id, page, i+1); err != nil {
					return err
				}
			}
			err = w.told(w.down(binary.NativeEndian.Uint64(e[8:]), key, next, depth+1))
		case flags == leafBucket:
			err = w.bucket(id, i, key, value, depth)
		case flags != 0:
			err = w.faulty(id, "entry %d has flags %#x", i, flags)
		}
		if err != nil {
			return err
		}
		least = key
	}
	return nil
}

// entry returns the key of an entry, and the value if the page is a leaf.
func (w *walk) entry(id uint64, page []byte, i int) (key, value []byte, err error) {
	at := uint64(elementAt(i))
	pos, k, v := element(PageFlags(page), page[at:])
	if begin := at + pos; begin+k+v > uint64(len(page)) {
		return nil, nil, w.faulty(id, "entry %d lies at bytes %d to %d of %d", i, begin, begin+k+v, len(page))
	}
	e := page[at+pos:]
	return e[:k:k], e[k : k+v], nil
}

// checkKey makes sure that keys go up and lie within the bounds. least is the key before;
// for the first one it is what the page above has. Where they differ bbolt reads what is
// right, and its next write below leaves pages behind that are used and free.
func (w *walk) checkKey(id uint64, i int, key, least, end []byte) error {
	order := bytes.Compare(key, least)
	switch {
	case i == 0 && least != nil && order != 0:
		return w.faulty(id, "key 0 is %x, the page above has %x", key, least)
	case i > 0 && order <= 0:
		return w.faulty(id, "key %d is %x, want one behind %x", i, key, least)
	case end != nil && bytes.Compare(key, end) >= 0:
		return w.faulty(id, "key %d is %x, want one before %x", i, key, end)
	}
	return nil
}

// bucket checks the pages of a bucket. One without a root page lies in the entry itself.
func (w *walk) bucket(id uint64, i int, name, value []byte, depth int) error {
	if len(value) < bucketValueLen {
		return w.faulty(id, "bucket %q has %d bytes, want %d", name, len(value), bucketValueLen)
	}
	switch root := binary.NativeEndian.Uint64(value); {
	case root != 0 && w.upper:
		return w.refer(id, i, root)
	case root != 0:
		return w.told(w.down(root, nil, nil, depth+1))
	}
	page := value[bucketValueLen:]
	if len(page) < PageHeaderLen || PageFlags(page) != PageLeaf || PageCount(page) > (len(page)-PageHeaderLen)/PageElementLen {
		return w.faulty(id, "bucket %q is not a leaf", name)
	}
	return w.entries(id, page, nil, nil, depth)
}
