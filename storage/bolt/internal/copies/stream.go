package copies

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/logdb"
	"github.com/partita-go/partita/storage/replog"
)

// ErrStream is returned when what is read is no whole backup: the stream was cut off or changed on its way, or is
// something else.
var ErrStream = errors.New("not a whole backup")

// ErrOvertaken is returned when events come to a replica faster than a seed of it is read.
var ErrOvertaken = errors.New("store is written faster than its seed is read")

// A backup as a stream, for whoever has no directory in common with the store:
//
//	magic { frame }
//
//	 0      1        5         5+n
//	+------+--------+---------+---------+
//	| kind | n      | payload | CRC-32C |
//	| 1    | 4, BE  | n       | 4, BE   |
//	+------+--------+---------+---------+
//
// The CRC covers the whole stream before it: so a frame that is missing, doubled or moved is found. The frames come in
// this order; those of a file that is not there are left out, and there may be several of pages, events and epochs.
const (
	streamMagic = "partita backup 1\n"
	// seedMagic begins a stream that makes a replica of a replicated log: see seed.go.
	seedMagic = "partita replica1\n"

	// frameStore: the header of log.db.
	frameStore = 'S'
	// frameFile: a file begins that comes page by page: its role (1) and its size in bytes (8, BE).
	frameFile = 'F'
	// framePages: what comes next of it.
	framePages = 'P'
	// frameLog: log.db begins: its last LSN, and its size in bytes (8, BE, each).
	frameLog = 'G'
	// frameEvents, frameEpochs: entries of log.db: { key length (4, BE), value length (4, BE), key, value }.
	frameEvents = 'L'
	frameEpochs = 'E'
	// frameReplica: up to where all that has a replicated log: see seed.go.
	frameReplica = 'R'
	// frameEnd: that was all.
	frameEnd = '.'
)

const (
	frameHead = 5
	frameSum  = 4
	// maxFrame is more than any frame has: pieces of a bucket have one entry more than they are meant to.
	maxFrame = 256 << 20
)

// Stream writes a backup.
type Stream struct {
	w    io.Writer
	tell func(name string, done, total uint64)
	sum  uint32
}

// NewStream begins a backup of the store that has an id and a descriptor. Tell is told as [Target.Tell] is.
func NewStream(w io.Writer, id format.StoreID, d messages.Descriptor, tell func(name string, done, total uint64)) (*Stream, error) {
	return newStream(w, streamMagic, id, d, tell)
}

func newStream(
	w io.Writer, magic string, id format.StoreID, d messages.Descriptor, tell func(name string, done, total uint64),
) (*Stream, error) {
	s := &Stream{w: w, tell: tell, sum: crc32.Checksum([]byte(magic), format.Castagnoli)}
	if _, err := io.WriteString(w, magic); err != nil {
		return nil, err
	}
	h := format.Header{Role: format.RoleLog, ID: id, Descriptor: d}
	return s, s.frame(frameStore, h.Encode())
}

func (s *Stream) frame(kind byte, payload []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	s.sum = crc32.Update(crc32.Update(s.sum, format.Castagnoli, head), format.Castagnoli, payload)
	sum := binary.BigEndian.AppendUint32(nil, s.sum)
	s.sum = crc32.Update(s.sum, format.Castagnoli, sum)
	for _, b := range [][]byte{head, payload, sum} {
		if _, err := s.w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// Pages writes the pages of a file.
func (s *Stream) Pages(ctx context.Context, from Pages, r format.Role) error {
	begin := binary.BigEndian.AppendUint64([]byte{byte(r)}, uint64(from.Size()))
	if err := s.frame(frameFile, begin); err != nil {
		return err
	}
	return from.writeTo(&copyWriter{ctx: ctx, w: pageFrames{s}, tell: s.tell, name: r.FileName()})
}

type pageFrames struct{ *Stream }

func (p pageFrames) Write(b []byte) (int, error) { return len(b), p.frame(framePages, b) }

// Log writes log.db up to the LSN given, as [Target.Log] does.
func (s *Stream) Log(ctx context.Context, log *logdb.Log, last messages.LSN) error {
	begin := binary.BigEndian.AppendUint64(nil, uint64(last))
	if err := s.frame(frameLog, binary.BigEndian.AppendUint64(begin, uint64(log.File.Size()))); err != nil {
		return err
	}
	done := uint64(0)
	return eachOfLog(ctx, log, last, func(bucket []byte, e *boltfile.Entries) error {
		kind := byte(frameEpochs)
		if string(bucket) == string(format.BucketLog) {
			kind = frameEvents
			done += uint64(len(e.Keys))
		}
		if err := s.entries(kind, e); err != nil {
			return err
		}
		s.tell(format.LogFileName, done, uint64(last))
		return nil
	})
}

func (s *Stream) entries(kind byte, e *boltfile.Entries) error {
	b := make([]byte, 0, e.Bytes+8*len(e.Keys))
	e.Each(func(k, v []byte) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(k)))
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(append(b, k...), v...)
	})
	return s.frame(kind, b)
}

// End says that this was all.
func (s *Stream) End() error { return s.frame(frameEnd, nil) }

// Received is what a stream said.
type Received struct {
	Given
	ID format.StoreID
	// At is up to where a replica's log.db has its log, Kept up to where all of it has.
	At, Kept replog.Position
}

// receiving is a backup that is being read.
type receiving struct {
	*Target
	r      io.Reader
	sum    uint32
	result Received
	// pages is the file under way, log is log.db; nil if there is none.
	pages  *os.File
	copied *copyWriter
	log    *boltfile.File
	events uint64
	begun  bool
	// seed says that it makes a replica; placed, that it has said where that is.
	seed, placed bool
}

// Receive makes the files of a backup in the directory of the target, of which nothing else but Options and Tell need
// be set. It returns ErrStream unless it was read to its end, and nothing is behind that.
func (t *Target) Receive(ctx context.Context, r io.Reader) (Received, error) {
	return t.receive(ctx, &receiving{Target: t, r: r}, streamMagic)
}

func (t *Target) receive(ctx context.Context, in *receiving, want string) (Received, error) {
	in.result.Sizes = make(map[format.Role]int64)
	err := in.all(ctx, want)
	err = in.endPages(err)
	if in.log != nil {
		if err == nil && in.seed {
			err = in.log.Update(in.putReplica)
		}
		err = t.endLog(in.log, in.result.Last, err)
	}
	return in.result, err
}

func (in *receiving) all(ctx context.Context, want string) error {
	magic := make([]byte, len(want))
	if _, err := io.ReadFull(in.r, magic); err != nil {
		return cutOff(err)
	}
	if string(magic) != want {
		return fmt.Errorf("%w: it begins with %.40q", ErrStream, magic)
	}
	in.sum = crc32.Checksum(magic, format.Castagnoli)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		kind, payload, err := in.frame()
		if err != nil {
			return err
		}
		if kind == frameEnd {
			return in.end()
		}
		if err := in.take(ctx, kind, payload); err != nil {
			return err
		}
	}
}

// cutOff says that a stream has ended too early, if that is so.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it was cut off", ErrStream)
	}
	return err
}

func (in *receiving) frame() (kind byte, payload []byte, err error) {
	head := make([]byte, frameHead)
	if _, err := io.ReadFull(in.r, head); err != nil {
		return 0, nil, cutOff(err)
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("%w: a part has %d bytes, want at most %d", ErrStream, n, maxFrame)
	}
	payload = make([]byte, n+frameSum)
	if _, err := io.ReadFull(in.r, payload); err != nil {
		return 0, nil, cutOff(err)
	}
	payload, sum := payload[:n], payload[n:]
	in.sum = crc32.Update(crc32.Update(in.sum, format.Castagnoli, head), format.Castagnoli, payload)
	if got := binary.BigEndian.Uint32(sum); got != in.sum {
		return 0, nil, fmt.Errorf("%w: the checksum of a part does not match", ErrStream)
	}
	in.sum = crc32.Update(in.sum, format.Castagnoli, sum)
	return head[0], payload, nil
}

var errOrder = fmt.Errorf("%w: its parts are not in their order", ErrStream)

// end makes sure that nothing is missing, and nothing comes behind the end.
func (in *receiving) end() error {
	if in.log == nil || in.events != uint64(in.result.Last) || in.placed != in.seed {
		return fmt.Errorf("%w: got %d events, want %d", ErrStream, in.events, in.result.Last)
	}
	if n, err := in.r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something is behind its end", ErrStream)
	}
	return nil
}

func (in *receiving) take(ctx context.Context, kind byte, payload []byte) error {
	if in.begun != (kind != frameStore) {
		return errOrder
	}
	switch kind {
	case frameStore:
		return in.store(payload)
	case frameFile:
		return in.file(ctx, payload)
	case framePages:
		if in.pages == nil {
			return errOrder
		}
		_, err := in.copied.Write(payload)
		return err
	case frameLog:
		return in.beginLog(payload)
	case frameEvents, frameEpochs:
		if in.log == nil {
			return errOrder
		}
		return in.entries(kind, payload)
	case frameReplica:
		return in.place(payload)
	}
	return fmt.Errorf("%w: it has a part of kind %q", ErrStream, kind)
}

func (in *receiving) store(payload []byte) error {
	h, err := format.DecodeHeader(payload)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStream, err)
	}
	in.begun = true
	in.result.ID = h.ID
	in.ID, in.Descriptor = h.ID, h.Descriptor
	return nil
}

func (in *receiving) file(ctx context.Context, payload []byte) error {
	if len(payload) != 9 || in.log != nil && !in.seed {
		return errOrder
	}
	if err := in.endPages(nil); err != nil {
		return err
	}
	r, size := format.Role(payload[0]), binary.BigEndian.Uint64(payload[1:])
	if r != format.RoleIDs && r != format.RoleSubscriptions && r != format.RoleState {
		return fmt.Errorf("%w: it has a file of %v", ErrStream, r)
	}
	var err error
	if in.pages, err = in.Directory.MakeFile(r.FileName(), 0); err != nil {
		return err
	}
	in.result.Sizes[r] = int64(size)
	in.copied = &copyWriter{ctx: ctx, w: in.pages, tell: in.Tell, name: r.FileName(), total: size}
	return nil
}

// endPages closes the file under way, if there is one.
func (in *receiving) endPages(err error) error {
	if in.pages == nil {
		return err
	}
	pages := in.pages
	in.pages = nil
	return closePages(pages, err)
}

func (in *receiving) beginLog(payload []byte) (err error) {
	if len(payload) != 16 || in.log != nil {
		return errOrder
	}
	if err := in.endPages(nil); err != nil {
		return err
	}
	in.result.Last = messages.LSN(binary.BigEndian.Uint64(payload))
	in.result.Sizes[format.RoleLog] = int64(binary.BigEndian.Uint64(payload[8:]))
	in.log, err = in.newFile(format.RoleLog)
	return err
}

func (in *receiving) entries(kind byte, payload []byte) error {
	var e boltfile.Entries
	for len(payload) > 0 {
		if len(payload) < 8 {
			return errOrder
		}
		k, v := uint64(binary.BigEndian.Uint32(payload)), uint64(binary.BigEndian.Uint32(payload[4:]))
		if payload = payload[8:]; uint64(len(payload)) < k+v {
			return errOrder
		}
		e.Add(payload[:k], payload[k:k+v])
		payload = payload[k+v:]
	}
	if kind == frameEpochs {
		return in.log.Put(format.BucketEpochs, boltfile.LogFill, &e)
	}
	in.events += uint64(len(e.Keys))
	in.Tell(format.LogFileName, in.events, uint64(in.result.Last))
	return in.log.Put(format.BucketLog, boltfile.LogFill, &e)
}
