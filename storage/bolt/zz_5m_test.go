package bolt
import ("testing";"time";"context";"github.com/partita-go/partita/messages")
func Test5M(t *testing.T) {
	dir := t.TempDir()
	s := openBench(t, dir, 4, Options{TailEvents: 1<<30, TailBytes: 1<<40})
	st := time.Now()
	for i := range uint32(4) { a := newBenchAppender(t, s, messages.PartitionID(i)); for n := 0; n < 1250000; n += 5000 { if err := a.append(5000); err != nil { t.Fatal(err) }; if n % 60000 == 0 { s.benchFlush(t, messages.PartitionID(i)) } }; s.benchFlush(t, messages.PartitionID(i)) }
	t.Log("made", time.Since(st), s.Stats())
	closeStore(t, s)
	for range 3 { st = time.Now(); s = openBench(t, dir, 4, Options{}); t.Log("open", time.Since(st), s.Stats().Scanned); s.Close(context.Background()) }
}
