package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/partition"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// programs returns the directory of PostgreSQL's programs.
func programs(t *testing.T) string {
	t.Helper()
	if initdb, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(initdb)
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	check(t, err)
	if len(found) == 0 {
		t.Skip("there is no PostgreSQL server: make bench-peers-install installs one")
	}
	return filepath.Dir(slices.Max(found))
}

// startPostgres runs a server of its own on a Unix socket, and returns its URL. Root lets the account postgres run it.
func startPostgres(t *testing.T) string {
	t.Helper()
	bin := programs(t)
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // the account must get there, and a socket has a short name
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	as := func(ctx context.Context, name string, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	}
	if os.Geteuid() == 0 {
		account, err := user.Lookup("postgres")
		if err != nil {
			t.Skip("root cannot run PostgreSQL, and there is no account postgres")
		}
		uid, err := strconv.Atoi(account.Uid)
		check(t, err)
		check(t, os.Chown(dir, uid, -1))
		as = func(ctx context.Context, name string, args ...string) *exec.Cmd {
			return exec.CommandContext(ctx, "runuser", append([]string{"-u", "postgres", "--", filepath.Join(bin, name)}, args...)...)
		}
	}
	data := filepath.Join(dir, "data")
	out, err := as(t.Context(), "initdb", "-D", data, "-U", "test", "-A", "trust", "-E", "UTF8", "--no-locale").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	options := fmt.Sprintf("-k %s -c listen_addresses='' -c fsync=off", dir)
	out, err = as(t.Context(), "pg_ctl", "-D", data, "-o", options, "-l", filepath.Join(dir, "log"), "-w", "start").CombinedOutput()
	if err != nil {
		t.Fatalf("pg_ctl: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := as(context.Background(), "pg_ctl", "-D", data, "-m", "immediate", "stop").CombinedOutput(); err != nil {
			t.Errorf("pg_ctl: %v: %s", err, out)
		}
	})
	return fmt.Sprintf("host=%s user=test dbname=postgres", dir)
}

// TestTakeover: each tenant goes on behind its last number. What was moved is not moved again; a counter that has gone on
// since then is an error, and moves nothing.
func TestTakeover(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	url, dir := startPostgres(t), filepath.Join(t.TempDir(), "invoices")
	conn, err := pgx.Connect(ctx, url)
	check(t, err)
	defer conn.Close(ctx)
	execute := func(text string) {
		t.Helper()
		_, err := conn.Exec(ctx, text)
		check(t, err)
	}
	execute("CREATE TABLE counters (tenant BIGINT PRIMARY KEY, last BIGINT NOT NULL)")
	execute("INSERT INTO counters SELECT n, n * 1000 FROM generate_series(1, 50) n")
	execute("INSERT INTO counters VALUES (99, 0)")
	if _, err := run(ctx, url, dir, false); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("without -new: got %v, want %v", err, storage.ErrNotFound)
	}
	for _, isNew := range []bool{true, false} {
		if moved, err := run(ctx, url, dir, isNew); err != nil || moved != 50 {
			t.Fatalf("got %d tenants, %v", moved, err)
		}
	}
	execute("UPDATE counters SET last = last + 1 WHERE tenant = 7")
	if _, err := run(ctx, url, dir, false); !errors.Is(err, partition.ErrDedupMismatch) {
		t.Errorf("got %v", err)
	}
	store, err := bolt.OpenExisting(ctx, dir, bolt.Options{ReadOnly: true})
	check(t, err)
	defer store.Close(ctx)
	reader := partition.NewReader(store)
	for tenant := range messages.WSID(51) {
		numbers, err := reader.Numbers(ctx, tenant)
		check(t, err)
		for _, n := range numbers.Of(invoices) {
			if n.Number != messages.Number(tenant*1000) {
				t.Errorf("tenant %d: got last number %d", tenant, n.Number)
			}
		}
		if tenant > 0 && numbers.Kind != tenants {
			t.Errorf("tenant %d was not moved", tenant)
		}
	}
}
