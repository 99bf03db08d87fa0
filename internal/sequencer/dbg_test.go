package sequencer
import ("testing";"math/rand/v2";"fmt";"strings")
type dbgT struct{ g *game; t *testing.T}
func (d *dbgT) Helper() {}
func (d *dbgT) Fatalf(f string, a ...any) {
 tr := d.g.trace
 if len(tr)>80 { tr=tr[len(tr)-80:] }
 panic(fmt.Sprintf(f,a...)+"\n"+strings.Join(tr,"\n"))
}
func TestDbg(t *testing.T) {
 best := ""; 
 for seed := range uint64(3000) {
  func() {
   d := &dbgT{t:t}
   defer func(){ if r := recover(); r != nil { s:=fmt.Sprint(r); if d.g!=nil { n:=len(d.g.trace); _ = n; if best=="" || len(s) < len(best) { best = fmt.Sprint("seed ",seed," ",s)} } } }()
   g := newGame(t, seededDice{rand.New(rand.NewPCG(seed,0))})
   d.g = g; g.t = d; g.tracing = true
   for range 300 { g.act() }
   g.finish()
  }()
 }
 if best != "" { t.Fatal(best) }
}
