package operate

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/partita-go/partita/calendar"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

const receipt messages.SeqID = 17

// richDescriptor has all rules.
func richDescriptor(partitions uint32) messages.Descriptor {
	return messages.Descriptor{Application: "shops & co", Partitions: partitions, TrustLevel: messages.TrustRecords, Kinds: []messages.Kind{
		{ID: shop, Name: "shop", Sequences: []messages.Sequence{
			{ID: invoice, Name: "Invoice", Initial: 1, Largest: messages.LargestSafe, Formats: []string{"INV-{n:04}"}},
			{ID: receipt, Name: "Receipt", Initial: 1, Restart: messages.Restart{Rule: calendar.Rule{Every: calendar.Day}, Zone: "Europe/Zurich", Keep: 9, Ahead: -1}},
		}},
		{ID: 2, Name: "empty"},
	}}
}

// population appends to a store whatever an event can have.
type population struct {
	t      *testing.T
	store  *bolt.Store
	epoch  messages.Epoch
	d      messages.Descriptor
	last   map[messages.PartitionID]messages.PLogOffset
	wlog   map[messages.WSID]messages.WLogOffset
	day    map[messages.SequencePeriod]map[messages.WSID]messages.Number
	clocks map[messages.PartitionID]messages.Timestamp
}

const populated = 400

// newRichStore makes a store of some hundred events, with subscriptions and generators of ids.
func newRichStore(t *testing.T, partitions uint32) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	d := richDescriptor(partitions)
	s, err := bolt.Open(limit(t), dir, d, bolt.Options{Create: true})
	check(t, err)
	p := &population{
		t: t, store: s, d: d, last: make(map[messages.PartitionID]messages.PLogOffset), wlog: make(map[messages.WSID]messages.WLogOffset),
		day: make(map[messages.SequencePeriod]map[messages.WSID]messages.Number), clocks: make(map[messages.PartitionID]messages.Timestamp),
	}
	p.takeEpochs()
	for i := range partitions {
		id := messages.PartitionID(i)
		// The partitions' clocks differ, so that commit order is not that of times.
		p.clocks[id] = messages.Timestamp(1_700_000_000_000_000 + 300*int64(i%2))
	}
	for i := 0; i < populated; {
		if i += p.append(i); p.epoch == 1 && i > populated/2 {
			p.takeEpochs()
		}
	}
	_, err = s.NextGenerator(limit(t), 7)
	check(t, err)
	p.subscribe()
	check(t, s.Close(limit(t)))
	return dir
}

func (p *population) takeEpochs() {
	p.epoch++
	for id := range p.d.Partitions {
		_, err := p.store.TakeEpoch(limit(p.t), messages.PartitionID(id))
		check(p.t, err)
	}
}

func (p *population) append(i int) int {
	ws := messages.WSID(i*i%11 + 1)
	id := messages.PartitionOf(ws, p.d.Partitions)
	p.clocks[id] += messages.Timestamp(i % 3 * 10)
	events := []messages.Event{p.event(i, ws)}
	if i%10 == 0 {
		events = append(events, p.event(i+1, ws), p.event(i+2, ws))
		events[0].Together = 2
	}
	if i%3 == 0 {
		events[0].DedupID = messages.DedupID{byte(i), byte(i >> 8), 1}
	}
	check(p.t, p.store.Append(limit(p.t), storage.Batch{Partition: id, Epoch: p.epoch, Events: events}))
	return len(events)
}

func (p *population) number(ws messages.WSID, seq messages.SeqID, period calendar.Date) messages.SequenceNumber {
	at := messages.SequencePeriod{Seq: seq, Period: period}
	if p.day[at] == nil {
		p.day[at] = make(map[messages.WSID]messages.Number)
	}
	p.day[at][ws]++
	return messages.SequenceNumber{Seq: seq, Period: period, Number: p.day[at][ws]}
}

func (p *population) event(i int, ws messages.WSID) messages.Event {
	id := messages.PartitionOf(ws, p.d.Partitions)
	p.last[id]++
	p.wlog[ws]++
	brings := i%8 == 3
	if brings {
		p.number(ws, invoice, 0) // one that an old system gave
	}
	n := p.number(ws, invoice, 0)
	e := messages.Event{
		Kind: messages.EventBusiness, Epoch: p.epoch, Partition: id, PLogOffset: p.last[id], Workspace: ws, WorkspaceKind: shop, WLogOffset: p.wlog[ws],
		RegisteredAt: p.clocks[id], Numbers: []messages.SequenceNumber{n},
		Records: []messages.Record{{ID: n.Record(), New: true, Data: fmt.Appendf(nil, `{"row":%d}`, i)}},
	}
	switch i % 4 {
	case 0:
		e.Date = calendar.Date(20231110 + i%5)
		e.Numbers = append(e.Numbers, p.number(ws, receipt, e.Date))
		e.Body = []byte(`{"a":"<b> & c"}`)
	case 1:
		e.Body = []byte{0xff, 0, byte(i)}
		e.Sections = []messages.Section{{Tag: 99, Data: []byte("kept")}, {Tag: 0}}
	case 2:
		e.Body = []byte(`"text "`)
		e.Records = append(e.Records, messages.Record{ID: n.Record(), Data: []byte("\xfe\xff")})
	}
	if brings {
		e.Brought = 1
	} else if i%8 == 7 {
		e.Moves = []messages.SequenceNumber{p.number(ws, invoice, 0)}
	}
	return e
}

func (p *population) subscribe() {
	ws := messages.WSID(5)
	own := messages.PartitionOf(ws, p.d.Partitions)
	all := storage.Subscription{Name: "all", Next: map[messages.PartitionID]uint64{}}
	for id, last := range p.last {
		all.Next[id] = uint64(last) / 2
		all.Parked = append(all.Parked, storage.ParkedEvent{Partition: id, Offset: 3, Reason: "it is\nwrong", Tries: 4, At: 5})
	}
	for _, s := range []storage.Subscription{
		all,
		{Name: "done", SubscriptionSource: storage.SubscriptionSource{Kinds: []messages.WSKind{shop}}, Next: p.ends(), Stopped: "paused"},
		{
			Name: "tenant", SubscriptionSource: storage.SubscriptionSource{Workspace: &ws}, Next: map[messages.PartitionID]uint64{own: 9},
			Parked: []storage.ParkedEvent{{Partition: own, Offset: 8, Reason: "r", Tries: 1, At: 2}},
		},
	} {
		check(p.t, p.store.PutSubscription(limit(p.t), s))
	}
}

func (p *population) ends() map[messages.PartitionID]uint64 {
	ends := make(map[messages.PartitionID]uint64)
	for id, last := range p.last {
		ends[id] = uint64(last) + 1
	}
	return ends
}

// exported is what export writes of a store.
func exported(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events")
	run(t, append([]string{"export", "--db", dir, "--to", file}, args...)...).has(t, exitFine)
	text, err := os.ReadFile(file)
	check(t, err)
	return text
}

// write writes a file, and returns its name.
func write(t *testing.T, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(file, text, 0o600))
	return file
}

// imported makes a store of a file, which must be sound.
func imported(t *testing.T, text []byte, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new")
	run(t, append([]string{"import", "--from", write(t, text), "--to", dir}, args...)...).has(t, exitFine)
	run(t, "verify", "--db", dir).has(t, exitFine)
	if _, err := os.Stat(dir + ".import"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want nothing left beside the store", err)
	}
	return dir
}

// workspaces returns the logs of all workspaces, without what partitions have given the events.
func workspaces(t *testing.T, dir string) map[messages.WSID][]messages.Event {
	t.Helper()
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{ReadOnly: true})
	check(t, err)
	defer func() { check(t, s.Close(limit(t))) }()
	all := make(map[messages.WSID][]messages.Event)
	for ws := messages.WSID(1); ws <= 11; ws++ {
		for e, err := range s.WLog(limit(t), ws, 1) {
			check(t, err)
			e.Partition, e.PLogOffset, e.Epoch = 0, 0, 0
			all[ws] = append(all[ws], e)
		}
	}
	return all
}

// ownParts are what the lines of a file have that depends on the number of partitions.
var ownParts = regexp.MustCompile(`"epoch":"\d+",|,"crc":"[0-9a-f]+"`)

// lines are those of events, without what depends on the number of partitions.
func lines(text []byte) []byte {
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return ownParts.ReplaceAll(text[:bytes.LastIndexByte(text[:len(text)-1], '\n')+1], nil)
}

// Exported, imported and exported again is the same, with all that an event and a store has.
func TestTransfer(t *testing.T) {
	dir := newRichStore(t, 2)
	subscriptions := filepath.Join(t.TempDir(), "subscriptions")
	text := exported(t, dir, "--subscriptions", subscriptions)
	again := imported(t, text, "--subscriptions", subscriptions)
	same(t, map[string]string{"events": string(text)}, map[string]string{"events": string(exported(t, again, "--subscriptions", subscriptions+"2"))})
	for _, want := range []string{`"launches":[7]`, `"dedup_id"`, `"period"`, `"together":2`, `"epoch":"2"`, `"brought"`, `"moves"`, `"sections"`, `"body_base64"`, `"body":{"a":"<b> & c"}`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("want %s in the file", want)
		}
	}
	was, err := os.ReadFile(subscriptions)
	check(t, err)
	is, err := os.ReadFile(subscriptions + "2")
	check(t, err)
	if !bytes.Equal(was, is) || !bytes.Contains(was, []byte(`"reason":"it is\nwrong"`)) {
		t.Errorf("got\n%s, want\n%s", is, was)
	}
	if !reflect.DeepEqual(workspaces(t, dir), workspaces(t, again)) {
		t.Error("the workspaces' logs differ")
	}
	s, err := bolt.OpenExisting(limit(t), again, bolt.Options{})
	check(t, err)
	if n, err := s.NextGenerator(limit(t), 7); err != nil || n != 1<<32-1 {
		t.Errorf("got generator %d, %v, want none of a launch that the old store may go on with", n, err)
	}
	check(t, s.Close(limit(t)))
}

// With another number of partitions the workspaces' logs are the same, and so are the lines of the events.
func TestTransferToOtherPartitions(t *testing.T) {
	for from, to := range map[uint32]string{2: "5", 5: "1"} {
		dir := newRichStore(t, from)
		text := exported(t, dir)
		again := imported(t, text, "--partitions", to)
		if !reflect.DeepEqual(workspaces(t, dir), workspaces(t, again)) {
			t.Errorf("%d to %s: the workspaces' logs differ", from, to)
		}
		if !bytes.Equal(lines(text), lines(exported(t, again))) {
			t.Errorf("%d to %s: the events are in another order", from, to)
		}
		goesOn(t, again, to)
	}
}

// goesOn appends to a store that was imported: the numbers go on.
func goesOn(t *testing.T, dir, partitions string) {
	t.Helper()
	before := workspaces(t, dir)
	n, err := messages.ParsePartitionID(partitions)
	check(t, err)
	d := richDescriptor(uint32(n))
	s, err := bolt.Open(limit(t), dir, d, bolt.Options{Create: true})
	check(t, err)
	parts := partition.NewAppParts(actor.NewActorSystem(), partition.Options{})
	app, err := parts.Deploy(limit(t), partition.Application{Descriptor: d}, s)
	check(t, err)
	check(t, app.Ready(limit(t)))
	for ws := messages.WSID(1); ws <= 11; ws++ {
		log := before[ws]
		if len(log) == 0 {
			continue
		}
		sequencer, err := app.SequencerOf(ws)
		check(t, err)
		done, err := sequencer.Append(limit(t), partition.AppendTo{Workspace: ws, Kind: shop}, partition.Draft{Wanted: []partition.Wanted{{Seq: invoice}}})
		check(t, err)
		last := log[len(log)-1].Numbering().Numbers
		want := max(last[0].Number, last[len(last)-1].Number*messages.Number(len(log[len(log)-1].Moves))) + 1
		if done.WLogOffset != messages.WLogOffset(len(log)+1) || done.Numbers[0].Number != want {
			t.Errorf("workspace %d: got offset %d, number %v, want %d, %d", ws, done.WLogOffset, done.Numbers, len(log)+1, want)
		}
	}
	check(t, errors.Join(parts.Close(limit(t)), s.Close(limit(t))))
	run(t, "verify", "--db", dir).has(t, exitFine)
}

// A part of a store can be exported, and is told to be one.
func TestTransferOfAPart(t *testing.T) {
	dir := newRichStore(t, 3)
	all := workspaces(t, dir)
	for _, part := range [][]string{{"--partition", "1", "--partition", "0"}, {"--workspace", "5", "--workspace", "1", "--workspace", "5"}} {
		text := exported(t, dir, part...)
		again := imported(t, text)
		if !bytes.Equal(text, exported(t, again, part...)) {
			t.Errorf("%v: exported again it differs", part)
		}
		for ws, log := range workspaces(t, again) {
			if !reflect.DeepEqual(log, all[ws]) {
				t.Errorf("%v: the log of workspace %d differs", part, ws)
			}
		}
		if o := run(t, "import", "--dry-run", "--from", write(t, text), "--to", dir+"2").has(t, exitFine); !strings.Contains(o.stdout, "a part of a store") {
			t.Errorf("got %q", o.stdout)
		}
	}
	got := slices.Sorted(maps.Keys(workspaces(t, imported(t, exported(t, dir, "--workspace", "5", "--workspace", "1")))))
	if !slices.Equal(got, []messages.WSID{1, 5}) {
		t.Errorf("got workspaces %v", got)
	}
	run(t, "export", "--db", dir, "--to", dir+"3", "--partition", "3").fails(t, exitBlind, "the application has 3")
	run(t, "export", "--db", dir, "--to", dir+"3", "--partition", "1", "--workspace", "1").fails(t, exitBlind, "exclude each other")
	run(t, "export", "--db", dir, "--to", dir+"3", "--partition", "1", "--subscriptions", dir+"4").fails(t, exitBlind, "wants the whole store")
	run(t, "export", "--db", dir, "--to", write(t, nil)).fails(t, exitBlind, "exists")
}

// Positions in the logs of other partitions: nothing that was not delivered is left out.
func TestTransferOfSubscriptions(t *testing.T) {
	dir := newRichStore(t, 2)
	file := filepath.Join(t.TempDir(), "subscriptions")
	text := exported(t, dir, "--subscriptions", file)
	again := imported(t, text, "--subscriptions", file, "--partitions", "3")
	old, now := openForTest(t, dir), openForTest(t, again)
	was, err := old.Subscription(limit(t), "all")
	check(t, err)
	is, err := now.Subscription(limit(t), "all")
	check(t, err)
	pending, repeated := undelivered(t, old, &was), 0
	for id := range messages.PartitionID(3) {
		first := true
		for e, err := range now.PLog(limit(t), id, 1) {
			check(t, err)
			if uint64(e.PLogOffset) < is.Position(id) {
				if pending[placeOf(&e)] {
					t.Errorf("event %d of workspace %d is left out", e.WLogOffset, e.Workspace)
				}
				continue
			}
			if first && !pending[placeOf(&e)] {
				t.Errorf("partition %d: got position %d, where nothing is to be delivered", id, is.Position(id))
			}
			if !pending[placeOf(&e)] {
				repeated++
			}
			first = false
		}
	}
	if repeated == 0 {
		t.Error("want some events repeated, else this shows nothing")
	}
	for e, err := range storage.AllParked(limit(t), now, "all", storage.ParkedEvent{}) {
		check(t, err)
		for moved, err := range now.PLog(limit(t), e.Partition, messages.PLogOffset(e.Offset)) {
			check(t, err)
			parkedAt := false
			for before, err := range storage.AllParked(limit(t), old, "all", storage.ParkedEvent{}) {
				check(t, err)
				for had, err := range old.PLog(limit(t), before.Partition, messages.PLogOffset(before.Offset)) {
					check(t, err)
					parkedAt = parkedAt || placeOf(&had) == placeOf(&moved)
					break
				}
			}
			if !parkedAt {
				t.Errorf("got event %d of workspace %d parked", moved.WLogOffset, moved.Workspace)
			}
			break
		}
	}
	if is.ParkedCount != 2 {
		t.Errorf("got %d parked events, want both", is.ParkedCount)
	}
	tenant, err := now.Subscription(limit(t), "tenant")
	check(t, err)
	if want := map[messages.PartitionID]uint64{2: 9}; !maps.Equal(tenant.Next, want) || tenant.ParkedCount != 1 {
		t.Errorf("got %v, %d parked, want %v, 1", tenant.Next, tenant.ParkedCount, want)
	}
	done, err := now.Subscription(limit(t), "done")
	check(t, err)
	if done.Stopped != "paused" || len(undelivered(t, now, &done)) != 0 {
		t.Errorf("got %+v, want nothing to be delivered", done)
	}
	check(t, errors.Join(old.Close(limit(t)), now.Close(limit(t))))
}

// Subscriptions that cannot be imported are refused before anything is written.
func TestTransferOfForeignSubscriptions(t *testing.T) {
	dir := newRichStore(t, 2)
	id := messages.PartitionID(1)
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	check(t, s.PutSubscription(limit(t), storage.Subscription{Name: "one", SubscriptionSource: storage.SubscriptionSource{Partition: &id}}))
	check(t, s.Close(limit(t)))
	file, to := filepath.Join(t.TempDir(), "subscriptions"), filepath.Join(t.TempDir(), "new")
	events := write(t, exported(t, dir, "--subscriptions", file))
	refused := func(text string, args ...string) {
		t.Helper()
		run(t, append([]string{"import", "--to", to, "--subscriptions", file}, args...)...).fails(t, exitBlind, text)
	}
	refused(`"one" reads partition 1 of 2`, "--from", events, "--partitions", "3")
	refused("a part of it", "--from", write(t, exported(t, dir, "--partition", "0")))
	refused("they are of application", "--from", write(t, exported(t, newRichStore(t, 3))))
	if _, err := os.Stat(to + ".import"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want nothing written", err)
	}
	s, err = bolt.OpenExisting(limit(t), dir, bolt.Options{})
	check(t, err)
	e := event(4, 1)
	e.Workspace, e.Partition, e.PLogOffset, e.Epoch, e.Numbers, e.Records = 400, 0, 1+lastOf(t, s, 0), 2, nil, nil
	e.RegisteredAt = 1_800_000_000_000_000
	check(t, s.Append(limit(t), storage.Batch{Partition: 0, Epoch: 2, Events: []messages.Event{e}}))
	check(t, s.Close(limit(t)))
	refused("they belong to events with SHA-256", "--from", write(t, exported(t, dir)))
}

func lastOf(t *testing.T, s *bolt.Store, id messages.PartitionID) messages.PLogOffset {
	t.Helper()
	r, err := s.Register(limit(t), id)
	check(t, err)
	return r.Last
}

type wlogPlace struct {
	ws     messages.WSID
	offset messages.WLogOffset
}

func placeOf(e *messages.Event) wlogPlace { return wlogPlace{e.Workspace, e.WLogOffset} }

func openForTest(t *testing.T, dir string) *bolt.Store {
	t.Helper()
	s, err := bolt.OpenExisting(limit(t), dir, bolt.Options{ReadOnly: true})
	check(t, err)
	return s
}

// undelivered are the events behind the positions of a subscription to all partitions.
func undelivered(t *testing.T, s *bolt.Store, sub *storage.Subscription) map[wlogPlace]bool {
	t.Helper()
	all := make(map[wlogPlace]bool)
	for i := range s.Descriptor().Partitions {
		id := messages.PartitionID(i)
		for e, err := range s.PLog(limit(t), id, messages.PLogOffset(sub.Position(id))) {
			check(t, err)
			all[placeOf(&e)] = true
		}
	}
	return all
}

// Each line that is not what was exported is refused by its number, and nothing is left under the store's name.
func TestImportOfBrokenFiles(t *testing.T) {
	sound := exported(t, newRichStore(t, 2))
	at := func(text []byte, change func(lines []string) []string) []byte {
		return []byte(strings.Join(change(strings.SplitAfter(string(text), "\n")), ""))
	}
	last := strings.Count(string(sound), "\n")
	for _, c := range []struct {
		what string
		text []byte
		want string
	}{
		{"a line is missing", at(sound, func(l []string) []string { return slices.Delete(l, 9, 10) }), "line 10: got event 10, want 9"},
		{"a line is doubled", at(sound, func(l []string) []string { return slices.Insert(l, 10, l[9]) }), "line 11: got event 9, want 10"},
		{"lines are swapped", at(sound, func(l []string) []string { l[7], l[8] = l[8], l[7]; return l }), "line 8: got event 8, want 7"},
		{"a byte is changed", at(sound, func(l []string) []string { l[4] = strings.Replace(l[4], "20", "21", 1); return l }), "line 5: its checksum is wrong"},
		{"the first line is missing", at(sound, func(l []string) []string { return l[1:] }), "line 1: it"},
		{"the last line is missing", at(sound, func(l []string) []string { return l[:last-1] }), fmt.Sprintf("line %d: the file ends before its last line", last)},
		{"the last event is missing", at(sound, func(l []string) []string { return slices.Delete(l, last-2, last-1) }), fmt.Sprintf("line %d: ", last-1)},
		{"cut off in a line", sound[:len(sound)/2], "the file ends in the middle of the line"},
		{"the last line feed is missing", sound[:len(sound)-1], fmt.Sprintf("line %d: the file ends in the middle", last)},
		{"two files", append(bytes.Clone(sound), sound...), fmt.Sprintf("line %d: it is behind the end", last+1)},
		{"an empty line at the end", append(bytes.Clone(sound), '\n'), fmt.Sprintf("line %d: it is behind the end", last+1)},
		{"another first line", at(sound, func(l []string) []string {
			l[0] = string(reseal([]byte(strings.Replace(l[0], "[7]", "[8]", 1))))
			return l
		}), fmt.Sprintf("line %d: the lines before it have SHA-256", last)},
		{"empty", nil, "line 1: the file is empty"},
		{"CRLF", bytes.ReplaceAll(sound, []byte("\n"), []byte("\r\n")), "line 1: it ends with a carriage return"},
		{"no export", []byte("rubbish\nanother line that is longer than a checksum\n"), "line 1: it is not a line of such a file"},
		{"another version", reseal(at(sound, func(l []string) []string { return []string{strings.Replace(l[0], `_export":1`, `_export":2`, 1)} })), "line 1: version of the file: got 2, want 1"},
		{"a member that is not known", reseal(at(sound, func(l []string) []string {
			l[1] = strings.Replace(l[1], `"workspace":`, `"new":1,"workspace":`, 1)
			return l
		})), "line 2: it is not as it would be exported"},
		{"a foreign offset", reseal(at(sound, func(l []string) []string {
			l[1] = strings.Replace(l[1], `"workspace":`, `"plog_offset":"1","workspace":`, 1)
			return l
		})), "line 2: partition and plog_offset"},
		{"an unknown sequence", reseal(at(sound, func(l []string) []string { l[3] = strings.Replace(l[3], `"sequence":16`, `"sequence":18`, 1); return l })), "line 4: invalid event"},
		{"a time that falls", reseal(at(sound, func(l []string) []string { l[390] = strings.Replace(l[390], "2023-", "2022-", 1); return l })), "line 391: registration time falls"},
	} {
		t.Run(c.what, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "new")
			for _, args := range [][]string{{"--dry-run"}, nil} {
				run(t, append([]string{"import", "--from", write(t, c.text), "--to", to}, args...)...).fails(t, exitBlind, c.want)
				if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("got %v, want no store", err)
				}
			}
			// With the right file the import goes on.
			if o := run(t, "import", "--from", write(t, sound), "--to", to).has(t, exitFine); !bytes.Equal(exported(t, to), sound) {
				t.Errorf("got another store: %s", o.stdout)
			}
		})
	}
}

// What lines do not show, the check of the whole store does: a workspace's events that are not in order.
func TestImportIsVerified(t *testing.T) {
	text := exported(t, newRichStore(t, 2))
	forged := reseal(bytes.Replace(text, []byte(`"wlog_offset":"7"`), []byte(`"wlog_offset":"8"`), 1))
	to := filepath.Join(t.TempDir(), "new")
	line := 1 + bytes.Count(text[:bytes.Index(text, []byte(`"wlog_offset":"7"`))], []byte("\n"))
	o := run(t, "import", "--from", write(t, forged), "--to", to)
	o.fails(t, exitFault,
		fmt.Sprintf("line %d: store violates its invariants", line), "the same events would fail again: delete "+to+".import")
	if strings.Contains(o.stderr, "go on") {
		t.Errorf("got %s, want no advice that does not help", o.stderr)
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no store", err)
	}
	// The import that failed is not gone on with by other events.
	run(t, "import", "--from", write(t, text), "--to", to).fails(t, exitBlind, "the import that was cut off is of other events")
	to += "2"
	run(t, "import", "--from", write(t, forged), "--to", to, "--workspace", "2", "--workspace", "10").fails(t, exitFault,
		"event ", " of these workspaces: store violates its invariants")
}

// An import of some workspaces is that of an export of them, whatever the number of partitions.
func TestImportOfWorkspaces(t *testing.T) {
	dir := newRichStore(t, 2)
	all, part := write(t, exported(t, dir)), filepath.Join(t.TempDir(), "part")
	run(t, "export", "--db", dir, "--to", part, "--workspace", "2", "--workspace", "10").has(t, exitFine)
	var stores [2]string
	for i, from := range [][]string{{all, "--workspace", "10", "--workspace", "2", "--workspace", "2"}, {part}} {
		stores[i] = filepath.Join(t.TempDir(), "new")
		o := run(t, append([]string{"import", "--to", stores[i], "--partitions", "3", "--json", "--from"}, from...)...).has(t, exitFine).json(t)
		if o["part"] != true || o["events"] == float64(0) {
			t.Errorf("got %v", o)
		}
	}
	if a, b := exported(t, stores[0]), exported(t, stores[1]); !bytes.Equal(a, b) {
		t.Errorf("got %d and %d bytes, want the same", len(a), len(b))
	}
	to := filepath.Join(t.TempDir(), "new")
	run(t, "import", "--from", all, "--to", to, "--workspace", "2", "--workspace", "99").fails(t, exitBlind, "workspace 99 has no event in the file")
	run(t, "import", "--from", all, "--to", to, "--workspace", "2", "--subscriptions", all).fails(t, exitBlind, "--subscriptions wants all workspaces")
	// Once the cause is mended, it goes on.
	o := run(t, "import", "--from", all, "--to", to, "--workspace", "2", "--json").has(t, exitFine).json(t)
	if o["found"] != o["events"] {
		t.Errorf("got %v", o)
	}
}

// Nothing is imported over what is there, and a dry run writes nothing.
func TestImportOverAStore(t *testing.T) {
	dir := newRichStore(t, 2)
	file := write(t, exported(t, dir))
	before := contents(t, dir)
	run(t, "import", "--from", file, "--to", dir).fails(t, exitBlind, "is not empty")
	run(t, "import", "--from", file, "--to", dir, "--dry-run").fails(t, exitBlind, "is not empty")
	untouched(t, dir, before)
	to := filepath.Join(t.TempDir(), "new")
	o := run(t, "import", "--from", file, "--to", to, "--dry-run", "--json").has(t, exitFine).json(t)
	if o["events"] != float64(strings.Count(string(exported(t, dir)), "\n")-2) || o["dry_run"] != true {
		t.Errorf("got %v", o)
	}
	entries, err := os.ReadDir(filepath.Dir(to))
	check(t, err)
	if len(entries) != 0 {
		t.Errorf("got %v, want nothing written", entries)
	}
	run(t, "import", "--from", file, "--to", to, "--partitions", "0").fails(t, exitBlind, "partitions")
	run(t, "import", "--from", file, "--to", to, "--partitions", "65537").fails(t, exitBlind, "partitions")
}
