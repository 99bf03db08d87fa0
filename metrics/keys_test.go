package metrics_test

import (
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/metrics"
	"github.com/partita-go/partita/partition"
)

// TestSetKeys: actors that run get series of their own, and lose them again; as many are alive as before.
func TestSetKeys(t *testing.T) {
	r := newRig(t, metrics.Options{})
	appends := func() {
		t.Helper()
		for _, ws := range []messages.WSID{4, 5} { // one of each partition
			s, err := r.app.SequencerOf(ws)
			r.check(err)
			_, err = s.Append(r.ctx, partition.AppendTo{Workspace: ws, Kind: shop}, partition.Draft{})
			r.check(err)
		}
	}
	appends()
	for _, keys := range [][]string{nil, {"partition", "appender"}, {"partition"}, nil} {
		r.metrics.SetKeys(keys)
		before := r.gather()
		appends()
		g := r.gather()
		all := g.find("partita_sent_messages_total", "actor_group=partition", "message=Append")
		if want := map[bool]int{true: 2, false: 1}[keys != nil]; len(all) != want {
			t.Errorf("keys %q: got %d series, want %d: %v", keys, len(all), want, all)
		}
		if keyless := g.find("partita_message_handling_time_seconds", "actor_group=partition", "actor_key="); (len(keyless) == 0) != (keys != nil) {
			t.Errorf("keys %q: got %v", keys, keyless)
		}
		for _, group := range []string{"partition", "appender"} {
			labels := []string{"actor_group=" + group}
			if group == "partition" {
				labels = append(labels, "status=normal")
			}
			g.want(before.value("partita_active_actors", labels...), "partita_active_actors", labels...)
			g.want(0, "partita_restarting_actors", "actor_group="+group)
		}
	}
}
