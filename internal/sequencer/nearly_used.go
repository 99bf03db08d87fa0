package sequencer

import (
	"slices"

	"github.com/partita-go/partita/messages"
)

// noticeUses notices which sequences of a workspace are nearly used.
func (c *Core) noticeUses(ws *workspace) {
	for i := range ws.last {
		c.noticeUse(ws, i)
	}
}

// noticeUse takes note of a sequence that is nearly used, once.
func (c *Core) noticeUse(ws *workspace, i int) {
	def, last := &ws.kind.sequences[i], ws.last[i]
	if !def.NearlyUsed(last) {
		return
	}
	known := slices.IndexFunc(c.nearlyUsed, func(n messages.NearlyUsed) bool { return n.Workspace == ws.id && n.Seq == def.ID })
	switch {
	case known >= 0:
		c.nearlyUsed[known].Last = last
	case len(c.nearlyUsed) < messages.MaxNearlyUsed:
		c.nearlyUsed = append(c.nearlyUsed, messages.NearlyUsed{
			Workspace: ws.id, Seq: def.ID, Name: def.Name, Last: last, Largest: def.Max(),
		})
		c.out.Status = true
	}
}
