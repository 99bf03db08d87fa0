package powerloss

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

// Flags are the arguments of strace for a record that [ReadTrace] understands; the
// command follows them.
func Flags(output string) []string {
	return []string{
		"-f", "-xx", "-y", "-s", "100000000", "--seccomp-bpf", "-o", output,
		"-e", "trace=write,pwrite64,writev,pwritev,lseek,fdatasync,fsync,sync_file_range,ftruncate,truncate,fallocate," +
			"openat,creat,linkat,link,unlinkat,unlink,renameat,renameat2,rename,mkdirat,mkdir",
	}
}

// never is the place of what has not happened.
const never = math.MaxInt

// Call is one system call.
type Call struct {
	Name string
	// Args are as strace writes them.
	Args []string
	// Result is what it returned, negative if it failed.
	Result int64
	// Begin and End are its places in the record. One that never returned has no End: it
	// is beyond all others.
	Begin, End int
	// Injected says that strace let it fail and did not do it.
	Injected bool
}

// errTrace is returned when a record is not understood.
var errTrace = errors.New("record not understood")

// ReadTrace reads strace's output. The calls are in the order in which they began.
func ReadTrace(r io.Reader) ([]Call, error) {
	var calls []Call
	unfinished := make(map[string]int) // by thread
	lines := bufio.NewReaderSize(r, 1<<20)
	for n := 0; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return calls, nil // what has no end was cut off
		}
		if err != nil {
			return nil, err
		}
		thread, text, ok := strings.Cut(string(bytes.TrimRight(line, "\n")), " ")
		text = strings.TrimLeft(text, " ")
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: line %d: %.100q", errTrace, n+1, line)
		case strings.HasPrefix(text, "+++"), strings.HasPrefix(text, "---"):
			continue
		case strings.HasPrefix(text, "?"), strings.HasPrefix(text, "<... ?"):
			continue // a thread that ends with its process: strace came too late
		}
		call, begun := unfinished[thread]
		if rest, resumed := strings.CutPrefix(text, "<... "); resumed {
			if !begun {
				return nil, fmt.Errorf("%w: line %d: it resumes what was not begun: %.100q", errTrace, n+1, line)
			}
			delete(unfinished, thread)
			_, rest, _ = strings.Cut(rest, " resumed>")
			err = calls[call].finish(rest, 2*n+1)
		} else {
			var c Call
			if c, err = beginCall(text, 2*n); err == nil && c.End == never {
				unfinished[thread] = len(calls)
			}
			calls = append(calls, c)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
}

// beginCall reads a call up to its end, or up to where another one interrupts it.
func beginCall(text string, place int) (Call, error) {
	name, rest, ok := strings.Cut(text, "(")
	if !ok {
		return Call{}, fmt.Errorf("%w: %.100q", errTrace, text)
	}
	c := Call{Name: name, Begin: place, End: never}
	if args, interrupted := strings.CutSuffix(rest, "<unfinished ...>"); interrupted {
		c.Args = splitArgs(args)
		return c, nil
	}
	return c, c.finish(rest, place+1)
}

// finish reads the rest of a call: arguments that are still missing, and the result.
func (c *Call) finish(rest string, place int) error {
	// Texts are in hex, and strace aligns results.
	end := strings.LastIndex(rest, "= ")
	args, ok := strings.CutSuffix(strings.TrimRight(rest[:max(end, 0)], " "), ")")
	if !ok {
		return fmt.Errorf("%w: %s: no result: %.100q", errTrace, c.Name, rest)
	}
	c.Args = append(c.Args, splitArgs(args)...)
	result := rest[end+len("= "):]
	c.Injected = strings.HasSuffix(result, "(INJECTED)")
	number, _, _ := strings.Cut(result, " ")
	number, _, _ = strings.Cut(number, "<")
	if number == "?" { // a signal came before it did anything, or the process has ended
		c.Result, c.End = -1, place
		return nil
	}
	n, err := strconv.ParseInt(number, 0, 64)
	if err != nil {
		return fmt.Errorf("%w: %s: result %q", errTrace, c.Name, result)
	}
	c.Result, c.End = n, place
	return nil
}

// splitArgs splits what strace was told to write in hex: no text has a comma.
func splitArgs(args string) []string {
	args = strings.TrimSuffix(strings.TrimSpace(args), ",")
	if args == "" {
		return nil
	}
	return strings.Split(args, ", ")
}

// arg returns an argument, or nothing if there is none.
func (c *Call) arg(n int) string {
	if n >= len(c.Args) {
		return ""
	}
	return c.Args[n]
}

// descriptor returns the number of an open file and the path that it was opened under.
func (c *Call) descriptor() (fd int, path string, err error) {
	number, rest, _ := strings.Cut(c.arg(0), "<")
	if fd, err = strconv.Atoi(number); err != nil {
		return 0, "", fmt.Errorf("%w: %s: descriptor %q", errTrace, c.Name, c.arg(0))
	}
	coded, _, _ := strings.Cut(rest, ">")
	text, err := unhex(coded)
	return fd, string(text), err
}

// text returns an argument that is a string.
func (c *Call) text(n int) ([]byte, error) {
	coded, ok := strings.CutPrefix(c.arg(n), `"`)
	coded, whole := strings.CutSuffix(coded, `"`)
	if !ok || !whole {
		return nil, fmt.Errorf("%w: %s: not a whole string: %.100q", errTrace, c.Name, c.arg(n))
	}
	return unhex(coded)
}

// path returns an argument that is a path, as seen from the directory that the argument before it is.
func (c *Call) path(n int) (string, error) {
	name, err := c.text(n)
	if err != nil || filepath.IsAbs(string(name)) {
		return string(name), err
	}
	_, rest, _ := strings.Cut(c.arg(n-1), "<")
	coded, _, _ := strings.Cut(rest, ">")
	above, err := unhex(coded)
	return filepath.Join(string(above), string(name)), err
}

func (c *Call) number(n int) (int64, error) {
	value, err := strconv.ParseInt(c.arg(n), 0, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %s: number %q", errTrace, c.Name, c.arg(n))
	}
	return value, nil
}

func unhex(coded string) ([]byte, error) {
	text, err := hex.DecodeString(strings.ReplaceAll(coded, `\x`, ""))
	if err != nil {
		return nil, fmt.Errorf("%w: %w: %.100q", errTrace, err, coded)
	}
	return text, nil
}
