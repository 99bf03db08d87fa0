package bolt

import (
	"errors"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/storagetest"
	"github.com/partita-go/partita/storage/verify"
)

// inZone writes down in both files that the receipts restart in a zone, whether there is such a zone or not.
func inZone(t *testing.T, dir string, h format.Header, zone string) {
	t.Helper()
	for _, r := range []format.Role{format.RoleLog, format.RoleState} {
		h.Role = r
		for i := range h.Descriptor.Kinds {
			for j := range h.Descriptor.Kinds[i].Sequences {
				if s := &h.Descriptor.Kinds[i].Sequences[j]; s.ID == storagetest.SeqReceipt {
					s.Restart.Zone = zone
				}
			}
		}
		f := openPlain(t, dir, r)
		expect.NoError(t, f.Update(func(tx *bbolt.Tx) error {
			return tx.Bucket(format.BucketHeader).Put(format.KeyHeader, h.Encode())
		}))
		expect.NoError(t, f.Close())
	}
}

// A store whose sequences restart in a zone that this machine does not know is whole: whoever opens it is told which
// zone is missing, nothing is changed, and it is there again as soon as the zone is known.
func TestZoneUnknownHere(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, dailyStore(2), Options{})
	p := storagetest.Take(t, s, 0)
	p.Append(t, storagetest.Spec{Workspace: 3, Give: []messages.SeqID{storagetest.SeqReceipt}, Day: storagetest.FirstDay})
	p.FlushAll(t)
	closeStore(t, s)
	h := headerOf(t, dir, format.RoleLog)
	inZone(t, dir, h, "Mars/Olympus")
	before := filesOf(t, dir)
	for name, try := range map[string]func() error{
		"open": func() error {
			_, err := Open(t.Context(), dir, dailyStore(2), Options{})
			return err
		},
		"open what is there": func() error {
			_, err := OpenExisting(t.Context(), dir, Options{ReadOnly: true})
			return err
		},
		"verify": func() error {
			_, err := Verify(t.Context(), dir, verify.Options{})
			return err
		},
	} {
		err := try()
		expect.ErrorIs(t, err, calendar.ErrZone, name)
		if errors.Is(err, storage.ErrDamaged) || !strings.Contains(err.Error(), `"Mars/Olympus"`) || !strings.Contains(err.Error(), "zone database") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	expect.Equal(t, before, filesOf(t, dir))
	inZone(t, dir, h, "")
	s = open(t, dir, dailyStore(2), Options{})
	closeStore(t, s)
	checkSound(t, dir)
}
