package serve

import (
	"testing"

	"github.com/partita-go/partita/actors"
)

// TestDumpThatEndsBadly: that the file of the dump before did not take everything is logged, and no reason to say that the
// configuration is not in force.
func TestDumpThatEndsBadly(t *testing.T) {
	l, lines, _ := newLive(t)
	next, err := l.dumps.open("/dev/full", dumpOptions(loadDocument(t, nil).Config))
	check(t, err)
	l.dumps.now.Store(next)
	l.dumps.Received(actors.Traffic{Key: actors.Key{Group: "partition", ID: "1"}, Message: &struct{}{}})
	check(t, l.replace(limit(t), []byte(`{"log_rate": 7}`)))
	const want = "dump that has ended is not whole"
	if shown := l.show(); shown.Refused != "" || l.dumps.now.Load() != nil || lines.FilterMessage(want).Len() != 1 {
		t.Errorf("got %+v, %v, want %s", shown, lines.All(), want)
	}
	if told := lines.FilterMessageSnippet("not in force").All(); len(told) > 0 {
		t.Errorf("got %v", told)
	}
}
