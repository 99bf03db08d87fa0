package transfer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
)

// maxLine is how long a line may be, in bytes: an event of 16 MiB with a million small records stays below.
const maxLine = 256 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// What stands around the checksum of a line.
const (
	crcOpen  = `,"crc":"`
	crcClose = `"}`
	crcLen   = len(crcOpen) + 8 + len(crcClose)
)

// LineError says what is wrong with a line of a file.
type LineError struct {
	// Line counts from 1.
	Line  uint64
	Cause error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Cause) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Cause }

// What is wrong with a line.
var (
	errCut      = errors.New("the file ends in the middle of the line, or its line feed is missing: it was cut off")
	errNoEnd    = errors.New("the file ends before its last line: it was cut off")
	errEmpty    = errors.New("the file is empty")
	errCRLF     = errors.New("it ends with a carriage return: the file was changed on its way")
	errTooLong  = fmt.Errorf("it is longer than the %d bytes that any event takes", maxLine)
	errNoLine   = errors.New("it is not a line of such a file")
	errChecksum = errors.New("its checksum is wrong: it was changed, or is not behind the line that it was behind")
	errBehind   = errors.New("it is behind the end: two files were joined, or something was added")
)

// seal appends to a line, which lacks its closing brace, its checksum and end. before is that of the line before.
func seal(line []byte, before uint32) (sealed []byte, crc uint32) {
	crc = crc32.Update(before, castagnoli, line)
	line = append(line, crcOpen...)
	line = appendHex(line, crc)
	return append(line, crcClose+"\n"...), crc
}

func appendHex(b []byte, n uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[n>>shift&15])
	}
	return b
}

// unseal returns a line without its checksum and closing brace, and its checksum, which must be right.
func unseal(line []byte, before uint32) (content []byte, crc uint32, err error) {
	if len(line) < crcLen {
		return nil, 0, errNoLine
	}
	content = line[:len(line)-crcLen]
	var want [crcLen]byte
	sealed, crc := seal(want[:0], crc32.Update(before, castagnoli, content))
	tail := line[len(content):]
	if string(tail[:len(crcOpen)]) != crcOpen || string(tail[crcLen-len(crcClose):]) != crcClose {
		return nil, 0, errNoLine
	}
	if !bytes.Equal(tail, sealed[:crcLen]) {
		return nil, 0, errChecksum
	}
	return content, crc, nil
}

// lineReader reads lines, and counts them.
type lineReader struct {
	r    *bufio.Reader
	line uint64
	// most is how long a line may be.
	most int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 1<<16), most: maxLine}
}

// next appends the next line to buf, without its line feed. It returns io.EOF behind the last one.
func (l *lineReader) next(buf []byte) ([]byte, error) {
	begin := len(buf)
	l.line++
	for {
		part, err := l.r.ReadSlice('\n')
		buf = append(buf, part...)
		switch {
		case len(buf)-begin > l.most:
			return buf, l.wrong(errTooLong)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(buf) == begin:
			return buf, io.EOF
		case errors.Is(err, io.EOF):
			return buf, l.wrong(errCut)
		case err != nil:
			return buf, err
		}
		buf = buf[:len(buf)-1]
		if n := len(buf); n > begin && buf[n-1] == '\r' {
			return buf, l.wrong(errCRLF)
		}
		return buf, nil
	}
}

func (l *lineReader) wrong(cause error) error { return &LineError{Line: l.line, Cause: cause} }

// end makes sure that nothing follows.
func (l *lineReader) end() error {
	switch _, err := l.next(nil); {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil, errors.As(err, new(*LineError)):
		return l.wrong(errBehind)
	default:
		return err
	}
}

// appendNumbered appends the beginning of a line that has a number, and a value under a name.
func appendNumbered(line []byte, n uint64, name string) []byte {
	line = append(line, `{"n":`...)
	line = strconv.AppendUint(line, n, 10)
	line = append(line, `,"`...)
	line = append(line, name...)
	return append(line, `":`...)
}

// numbered returns what a line has under a name, which must be the one with a number.
func numbered(content []byte, want uint64, name string) ([]byte, error) {
	rest, ok := bytes.CutPrefix(content, []byte(`{"n":`))
	digits, value, found := bytes.Cut(rest, []byte(`,"`+name+`":`))
	n, err := strconv.ParseUint(string(digits[:min(len(digits), 20)]), 10, 64)
	switch {
	case !ok || !found || err != nil || len(digits) > 20:
		return nil, errNoLine
	case n > want:
		return nil, fmt.Errorf("got %s %d, want %d: what is between is missing", name, n, want)
	case n < want:
		return nil, fmt.Errorf("got %s %d, want %d: the line is there twice, or not in its place", name, n, want)
	}
	return value, nil
}
