package bolt

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/storagetest"
)

// TestSubmitTakesWhatIsRemembered: only what needs no look into state.db.
func TestSubmitTakesWhatIsRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		trust messages.TrustLevel
		next  storagetest.Spec
		want  bool
	}{
		"a workspace that is remembered":    {messages.TrustNone, storagetest.Spec{Workspace: 3}, true},
		"a row behind the remembered end":   {messages.TrustNone, storagetest.Spec{Workspace: 3, Create: []messages.SeqID{storagetest.SeqOrder}}, true},
		"a workspace that was not seen":     {messages.TrustNone, storagetest.Spec{Workspace: 6}, false},
		"the same, where nothing is looked": {messages.TrustAll, storagetest.Spec{Workspace: 6}, true},
		"a deduplication id":                {messages.TrustAll, storagetest.Spec{Workspace: 3, DedupID: messages.DedupID{1}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, t.TempDir(), storagetest.Descriptor(c.trust), Options{})
			p := storagetest.Take(t, s, 0)
			p.Append(t, storagetest.Spec{Workspace: 3, Create: []messages.SeqID{storagetest.SeqOrder}})
			answer := make(chan error, 1)
			if got := s.Submit(p.Build(c.next), func(err error) { answer <- err }); got != c.want {
				t.Fatalf("got taken %t, want %t", got, c.want)
			}
			if !c.want {
				return
			}
			if err := <-answer; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDoorIsShut: a batch that was on its way when the store was closed is not taken.
func TestDoorIsShut(t *testing.T) {
	s := open(t, t.TempDir(), storagetest.Descriptor(messages.TrustNone), Options{})
	p := storagetest.Take(t, s, 0)
	b := p.Build(storagetest.Spec{Workspace: 3})
	r, err := s.request(&b)
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if s.letIn(r) {
		t.Error("it was taken, and nobody will answer it")
	}
}
