package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// small is the node whose disk can be filled: a file system of its own in memory. roomy is how much it has otherwise.
const (
	small = "n3"
	roomy = "size=16g"
)

// mount gives the small node a disk. It needs root.
func (c *cluster) mount() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("it needs root")
	}
	dir := c.path(small)
	check(c, os.Mkdir(dir, 0o700))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", roomy, "partita", dir).CombinedOutput(); err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	c.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			c.Errorf("umount: %v: %s", err, out)
		}
	})
	return nil
}

// fill leaves no room on the small node's disk, room gives it back.
func (c *cluster) fill() {
	c.Helper()
	for end := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		out, err := exec.Command("df", "-Pk", c.path(small)).Output()
		check(c, err)
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		used, err := strconv.Atoi(strings.Fields(lines[len(lines)-1])[2])
		check(c, err)
		// It fails if the node has taken more meanwhile.
		if err = c.remount(fmt.Sprintf("size=%dk", used)); err == nil {
			return
		}
		if time.Now().After(end) {
			c.Fatal(err)
		}
	}
}

func (c *cluster) room() {
	c.Helper()
	check(c, c.remount(roomy))
}

func (c *cluster) remount(size string) error {
	out, err := exec.Command("mount", "-o", "remount,"+size, c.path(small)).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("mount: %w: %s", err, out)
	}
	return err
}

// lead lets a node lead, if it can.
func (c *cluster) lead(name string) {
	c.Helper()
	for end := time.Now().Add(patience); ; <-time.After(50 * time.Millisecond) {
		owner := c.owner()
		if owner == name {
			return
		}
		if time.Now().After(end) {
			c.Fatalf("node %s does not lead", name)
		}
		_, _ = exec.Command(program, "cluster", "transfer", "--shard", "0", "--to", name, "--url", c.nodes[owner].url).CombinedOutput()
	}
}

// fillOwner fills the disk of the node that leads: another one leads then.
func (c *cluster) fillOwner(l *load) {
	c.Helper()
	c.lead(small)
	c.fill()
	defer c.again()
	for end := time.Now().Add(patience); c.owner() == small; <-time.After(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatal("a node without room leads on")
		}
	}
	l.await(3)
}

// fillFollower fills the disk of a node that does not lead: nobody notices.
func (c *cluster) fillFollower(l *load) {
	c.Helper()
	c.lead(names[0])
	c.fill()
	defer c.again()
	<-time.After(cutTime * c.failover)
	l.await(3)
}

// again gives the small node room, and waits until it takes part in each shard: by itself, or started again if it was its
// log that had none.
func (c *cluster) again() {
	c.Helper()
	c.room()
	var want status
	for end := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		var err error
		if len(want.Members) == 0 {
			want, err = c.status(c.owner())
		}
		var s status
		if err == nil {
			s, err = c.status(small)
		}
		all := s.of(small)
		failed := func(m standing) bool { return strings.Contains(m.Stopped, "disk has failed") }
		switch {
		case err == nil && len(all) == c.shards && !slices.ContainsFunc(all, want.lacks):
			return
		case err == nil && slices.ContainsFunc(all, failed):
			c.stop(small)
			c.start(small)
		case time.Now().After(end):
			c.Fatalf("node %s: got %+v, %v, want %+v", small, all, err, want)
		}
	}
}

// lacks reports whether a node takes no part in a shard, or has not all yet that others had.
func (s *status) lacks(m standing) bool {
	return m.Stopped != "" || slices.ContainsFunc(s.Members, func(o standing) bool { return o.Shard == m.Shard && o.Head > m.Head })
}
