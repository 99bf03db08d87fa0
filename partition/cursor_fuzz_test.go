package partition

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// FuzzParseCursor: text is a cursor that reads the same when it is printed again, and of
// which a feed can be made unless it is ahead; or it is ErrCursor. With sealed set the text
// is the inside of a cursor, which gets a right checksum.
func FuzzParseCursor(f *testing.F) {
	m, err := storagetest.NewMemory(storagetest.Descriptor(messages.TrustNone))
	if err != nil {
		f.Fatal(err)
	}
	r := NewReader(m)
	for _, c := range []Cursor{
		{application: "storagetest", next: []messages.PLogOffset{1, 1, 1}},
		{application: "storagetest", next: []messages.PLogOffset{1, 1, 1}, turn: 2},
		{application: "storagetest", next: []messages.PLogOffset{1, 129, math.MaxUint64}, turn: 1},
		{application: "other", next: []messages.PLogOffset{1, 1, 1}},
		{application: "storagetest", next: []messages.PLogOffset{1, 1}},
	} {
		text := c.String()
		inside, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, false)
		f.Add(string(inside[:len(inside)-4]), true)
	}
	f.Add("", false)
	f.Add("AQ", false)
	f.Fuzz(func(t *testing.T, text string, sealed bool) {
		if sealed {
			inside := binary.BigEndian.AppendUint32([]byte(text), crc32.Checksum([]byte(text), castagnoli))
			text = base64.RawURLEncoding.EncodeToString(inside)
		}
		c, err := r.ParseCursor(text)
		if err != nil {
			if !errors.Is(err, ErrCursor) || !c.IsZero() {
				t.Fatalf("%q: got %+v and %v, want nothing and ErrCursor", text, c, err)
			}
			return
		}
		if c.String() != text {
			t.Fatalf("%q: it is printed as %q", text, c)
		}
		feed, err := r.Feed(t.Context(), c)
		if err != nil {
			if !errors.Is(err, ErrCursor) {
				t.Fatalf("%q: feed: %v", text, err)
			}
			return
		}
		if page, err := feed.Page(t.Context(), 1); err != nil || len(page) > 0 {
			t.Fatalf("%q: page of an empty store: got %v and %v", text, page, err)
		}
	})
}
