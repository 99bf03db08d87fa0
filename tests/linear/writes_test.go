package linear

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
)

// wanted are the numbers of a draft, and the sequences one by one.
func (d *draft) wanted() (wanted []messages.Wanted, each []messages.SeqID) {
	if d.invoices > 0 {
		wanted = append(wanted, messages.Wanted{Seq: seqInvoice, Count: uint32(d.invoices)})
	}
	if d.receipt > 0 {
		wanted = append(wanted, messages.Wanted{Seq: seqReceipt, Count: uint32(d.receipt)})
	}
	for _, w := range wanted {
		for range w.Numbers() {
			each = append(each, w.Seq)
		}
	}
	return wanted, each
}

// append does a write in one message.
func (c *client) append(ctx context.Context, w *write) (answer, error) {
	to := partition.AppendTo{Workspace: w.workspace, Kind: kindShop, DedupID: w.id, Expected: w.expected, Wait: true}
	var drafts []messages.Draft
	numbers := 0
	for _, d := range w.drafts {
		wanted, each := d.wanted()
		one := messages.Draft{Wanted: wanted, Body: []byte(d.body)}
		if d.invoices > 0 {
			one.Records = []messages.DraftRecord{{Number: numbers, New: true, Data: []byte(d.body)}}
		}
		if d.update > 0 {
			one.Records = append(one.Records, messages.DraftRecord{ID: invoiceID(d.update), Data: []byte(d.body)})
		}
		numbers += len(each)
		drafts = append(drafts, one)
	}
	if len(drafts) == 1 {
		one, err := c.sequencer(w.workspace).Append(ctx, to, drafts[0])
		if err != nil {
			return answer{}, err
		}
		return told(*one), nil
	}
	all, err := c.sequencer(w.workspace).AppendAll(ctx, to, drafts)
	if err != nil {
		return answer{}, err
	}
	return together(all), nil
}

func told(a messages.Appended) answer {
	return answer{plog: a.PLogOffset, wlog: a.WLogOffset, at: a.RegisteredAt, numbers: a.Numbers, repeated: a.Repeated}
}

// together is the answer to an append of several events. If they do not follow one
// another, it is one that is never right.
func together(all []messages.Appended) answer {
	first := told(all[0])
	for i := range all[1:] {
		next := &all[1+i]
		if next.PLogOffset != all[i].PLogOffset+1 || next.WLogOffset != all[i].WLogOffset+1 ||
			next.RegisteredAt != first.at || next.Repeated != first.repeated {
			return answer{}
		}
		first.numbers = append(slices.Clip(first.numbers), next.Numbers...)
	}
	return first
}

// transaction does a write step by step.
func (c *client) transaction(ctx context.Context, w *write) (answer, error) {
	tx, records, err := c.open(ctx, w)
	if err != nil {
		return answer{}, err
	}
	if c.random.IntN(20) == 0 {
		return answer{}, errors.Join(errCancelled, tx.Cancel(ctx))
	}
	return granted(tx), tx.Commit(ctx, []byte(w.drafts[0].body), records...)
}

// errCancelled is what becomes of a write that its client gives up.
var errCancelled = errors.New("cancelled")

// open opens a transaction and takes its numbers.
func (c *client) open(ctx context.Context, w *write) (*partition.Transaction, []messages.Record, error) {
	tx, err := c.sequencer(w.workspace).StartWaiting(ctx, kindShop, w.workspace)
	if err != nil {
		return nil, nil, err
	}
	c.granted = true
	d := &w.drafts[0]
	_, seqs := d.wanted()
	for _, seq := range seqs {
		if _, err := tx.Next(ctx, seq); err != nil {
			return nil, nil, errors.Join(err, tx.Cancel(ctx))
		}
	}
	return tx, rowsOf(d, tx.Numbers()), nil
}

func rowsOf(d *draft, numbers []messages.SequenceNumber) (rows []messages.Record) {
	if d.invoices > 0 {
		rows = append(rows, messages.Record{ID: numbers[0].Record(), New: true, Data: []byte(d.body)})
	}
	if d.update > 0 {
		rows = append(rows, messages.Record{ID: invoiceID(d.update), Data: []byte(d.body)})
	}
	return rows
}

func invoiceID(n messages.Number) messages.RecordID {
	return messages.RecordID{Seq: seqInvoice, Number: n}
}

// granted is the answer that a transaction gives as it goes.
func granted(tx *partition.Transaction) answer {
	return answer{plog: tx.PLogOffset(), wlog: tx.WLogOffset(), at: tx.RegisteredAt(), numbers: tx.Numbers()}
}

// die opens a transaction that its owner never ends: the partition takes it away when
// its limit has passed. Some have written before, and some write when it is too late.
func (c *client) die(ctx context.Context) {
	w := c.newWrite("Transaction without end")
	called := c.tick()
	// The end of the operation bounds the wait for the transaction, but must not cancel it.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	granting := context.AfterFunc(ctx, cancel)
	tx, records, err := c.open(own, w)
	granting()
	if err != nil {
		c.wrote(called, w, answer{}, err)
		return
	}
	event, err := tx.Event([]byte(w.drafts[0].body), records...)
	if err != nil {
		c.wrote(called, w, answer{}, err)
		return
	}
	fenced := c.random.IntN(2) == 0 && c.overtake(ctx, w.workspace)
	called = c.tick()
	a, err := survived(func() (answer, error) {
		batch := storage.Batch{Partition: tx.Token().Partition, Epoch: tx.Token().Epoch, Events: []messages.Event{event}}
		err := c.store.Append(ctx, batch)
		if fenced {
			return answer{}, err // an answer that is never right
		}
		return granted(tx), err
	})
	c.wrote(called, w, a, err)
}

// overtake does a transaction behind one that nobody ends. It reports whether it was
// granted: the partition has taken a new epoch then. While it replays its tail it
// grants none, so that it takes some tries.
func (c *client) overtake(ctx context.Context, ws messages.WSID) bool {
	c.granted = false
	for tries := 0; tries < 3 && !c.granted; tries++ {
		c.count++
		w := c.newWrite("Transaction behind")
		w.workspace = ws
		c.write(ctx, w, c.transaction)
	}
	return c.granted
}

// newCommand returns a command, whose body says what its event is to be given.
func (c *client) newCommand() *write {
	w := c.newWrite("Command")
	d := &w.drafts[0]
	d.update = 0
	d.body = strings.Join([]string{d.body, strconv.Itoa(d.invoices), strconv.Itoa(d.receipt)}, " ")
	if c.random.IntN(8) == 0 {
		d.body += " " + fatal
	}
	return w
}

// fatal is in the body of a command that its handler panics with.
const fatal = "fatal"

// command lets a command processor do a write.
func (c *client) command(ctx context.Context, w *write) (answer, error) {
	p := c.processors[c.random.IntN(len(c.processors))]
	cmd := messages.Command{Workspace: w.workspace, Kind: kindShop, Body: []byte(w.drafts[0].body)}
	if c.random.IntN(4) == 0 {
		cmd.Deadline = messages.TimestampOf(time.Now().Add(time.Duration(c.random.Int64N(int64(time.Millisecond)))))
	}
	for i := range min(1, w.drafts[0].invoices) {
		cmd.RawRecords = append(cmd.RawRecords, messages.RawRecord{ID: messages.RawID(i + 1), Seq: seqInvoice})
	}
	d, err := p.Execute(ctx, cmd)
	if err != nil {
		return answer{}, err
	}
	return answer{plog: d.PLogOffset, wlog: d.WLogOffset, at: d.RegisteredAt, numbers: d.Numbers}, nil
}

// parsed are the numbers that a command asks for, without those of its raw ids.
func parsed(c *messages.Command) []messages.SeqID {
	fields := strings.Fields(string(c.Body))
	if fields[len(fields)-1] == fatal {
		panic(fatal)
	}
	invoices, _ := strconv.Atoi(fields[1])
	receipt, _ := strconv.Atoi(fields[2])
	d := draft{invoices: invoices, receipt: receipt}
	_, seqs := d.wanted()
	return seqs[len(c.RawRecords):]
}

// decide is the handler of commands that run in a transaction.
func decide(ctx context.Context, c *partition.CommandContext) error {
	for _, seq := range parsed(c.Command()) {
		if _, err := c.Next(ctx, seq); err != nil {
			return err
		}
	}
	for _, raw := range c.Command().RawRecords {
		id, err := c.ID(raw.ID)
		if err != nil {
			return err
		}
		if err := c.Insert(ctx, id, c.Command().Body); err != nil {
			return err
		}
	}
	return nil
}

// drafted is the drafter of commands that are appended.
func drafted(_ context.Context, d *partition.DraftContext) error {
	for _, seq := range parsed(d.Command()) {
		d.Want(seq)
	}
	for i := range d.Command().RawRecords {
		d.Insert(i, d.Command().Body)
	}
	return nil
}
