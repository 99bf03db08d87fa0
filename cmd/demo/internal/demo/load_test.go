package demo

import (
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	for _, args := range []string{"", "--workspaces 1 --clients 100"} {
		t.Run(args, func(t *testing.T) {
			all := append([]string{"load", "--json", "--events", "500", "--workspaces", "50", "--clients", "10"}, strings.Fields(args)...)
			d := runDemo(t, all...).fine(t).json(t)
			d.want(t, true, "ok")
			d.want(t, false, "kept")
			d.want(t, 500, "events")
			d.want(t, 500, "in_log")
			d.want(t, 0, "unknown")
			d.want(t, 500, "check", "events")
			d.want(t, 1000, "check", "numbers")
		})
	}
}

func TestLoadTwice(t *testing.T) {
	dir := storeOf(t)
	o := runDemo(t, "load", "--events", "100", "--db", dir).fine(t)
	for _, text := range []string{"has 300 events already", "p99.9", "400 events", "100 events were acknowledged"} {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("got no %q in:\n%s", text, o.stdout)
		}
	}
}
