package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/partita-go/partita/httpapi"
	"github.com/partita-go/partita/httpclient"
	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
)

// statusLines are what `partita status --follow` prints.
type statusLines struct {
	*bufio.Scanner
	t      *testing.T
	cancel context.CancelFunc
	ended  chan int
	stderr bytes.Buffer
}

func followStatus(t *testing.T, args ...string) *statusLines {
	t.Helper()
	ctx, cancel := context.WithCancel(limit(t))
	out, in := io.Pipe()
	l := &statusLines{Scanner: bufio.NewScanner(out), t: t, cancel: cancel, ended: make(chan int, 1)}
	go func() {
		status := Run(ctx, append([]string{"status", "--follow"}, args...), strings.NewReader(""), in, &l.stderr)
		_ = in.Close()
		l.ended <- status
	}()
	return l
}

func (l *statusLines) next() string {
	l.t.Helper()
	if !l.Scan() {
		l.t.Fatalf("there are no more: status %d, %s", <-l.ended, &l.stderr)
	}
	return l.Text()
}

// stop interrupts it, and wants that to be all that it says.
func (l *statusLines) stop() {
	l.t.Helper()
	l.cancel()
	for l.Scan() {
	}
	if status := <-l.ended; status != exitBlind || l.stderr.String() != "partita: interrupted\n" {
		l.t.Errorf("got status %d, %s", status, &l.stderr)
	}
}

// TestStatus: what the actors of a server do is shown once, or followed with each change, while the server is killed and
// starts again.
func TestStatus(t *testing.T) {
	server := startServer(t)
	at := []string{"--url", server.url()}
	client, err := httpclient.New(server.url(), httpclient.Options{})
	check(t, err)
	defer client.Close()
	check(t, client.Ready(limit(t)))
	if o := run(t, append([]string{"status"}, at...)...).has(t, exitFine); o.stdout != "partition/0 normal\npartition/1 normal\n" {
		t.Errorf("got %s", o.stdout)
	}
	var result statusResult
	check(t, json.Unmarshal([]byte(run(t, append([]string{"status", "--json"}, at...)...).has(t, exitFine).stdout), &result))
	if len(result.Actors) != 2 || result.Actors[1].Key != "1" || result.Actors[1].State != "normal" {
		t.Errorf("got %+v", result)
	}

	lines, documents := followStatus(t, at...), followStatus(t, append(at, "--json")...)
	for _, want := range []string{`partition/0 normal`, `partition/1 normal`} {
		if got := lines.next(); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ` + want + `$`).MatchString(got) {
			t.Errorf("got %s, want a time and %s", got, want)
		}
		documents.next()
	}
	// A sequence that ends soon is an alarm, which is over when the partition starts anew.
	_, err = client.Append(limit(t), partition.AppendTo{Workspace: 4, Kind: shop}, partition.Draft{
		Moves: []messages.SequenceNumber{{Seq: invoice, Number: messages.LargestDefault - 1}},
	})
	check(t, err)
	if got := lines.next(); !strings.Contains(got, "Z partition/0 alarming: sequence Invoice of workspace 4") {
		t.Errorf("got %s", got)
	}
	var one httpapi.ActorStatus
	check(t, json.Unmarshal([]byte(documents.next()), &one))
	if one.Group != "partition" || one.Key != "0" || one.State != "alarming" {
		t.Errorf("got %+v", one)
	}
	server.kill()
	server.start()
	for got := ""; !strings.HasSuffix(got, "partition/0 normal"); got = lines.next() {
	}
	lines.stop()
	documents.stop()
	server.kill()
	run(t, append([]string{"status"}, at...)...).fails(t, exitBlind, "connect")
	t.Setenv(tokenVariable, secret)
	run(t, "status", "--url", "http://192.0.2.1:1").fails(t, exitBlind, "--url", "anybody could read")
}
