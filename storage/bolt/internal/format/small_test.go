package format_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/partita-go/partita/messages"
	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// What a role's file is called and has in it is part of the format.
func TestRoles(t *testing.T) {
	for r, want := range map[format.Role]string{
		format.RoleLog:           "log, log.db: header log epochs; header ids kept replica wal",
		format.RoleState:         "state, state.db: header plog workspaces index packs checkpoints conflicts dedup; header dedup projected witness",
		format.RoleSubscriptions: "subscriptions, subscriptions.db: header subscriptions positions parked; header replica subscriptions",
		format.RoleIDs:           "ids, ids.db: header launches; header launches",
		format.Role(9):           "role 9, state.db: header plog workspaces index packs checkpoints conflicts dedup; header dedup projected witness",
	} {
		words := func(list [][]byte) string { return string(bytes.Join(list, []byte(" "))) }
		expect.Equal(t, want, r.String()+", "+r.FileName()+": "+words(r.Buckets())+"; "+words(r.HeaderKeys()))
	}
	advice := []string{format.RoleLog.MetaAdvice(), format.RoleState.MetaAdvice(), format.RoleSubscriptions.MetaAdvice(), format.RoleIDs.MetaAdvice()}
	slices.Sort(advice)
	if len(slices.Compact(advice)) != 4 || slices.Contains(advice, "") {
		t.Errorf("got %q, want four that differ", advice)
	}
}

// A header keeps its format where it is, and each role counts its own.
func TestHeaderFormats(t *testing.T) {
	for r, oldest := range map[format.Role]uint16{format.RoleLog: 3, format.RoleState: 3, format.RoleSubscriptions: 1, format.RoleIDs: 1} {
		h := format.Header{Role: r, ID: format.StoreID{15: 255}, Descriptor: messages.Descriptor{Application: "test", Partitions: 1}}
		expect.Equal(t, strings.Repeat("00", 15)+"ff", h.ID.String())
		good := h.Encode()
		old := bytes.Clone(good[:len(good)-4])
		old[9] = byte(oldest - 1)
		_, err := format.DecodeHeader(old)
		expect.ErrorIs(t, err, storage.ErrFormat, r)
		_, err = format.DecodeHeader(good[:format.HeaderFixed])
		expect.ErrorIs(t, err, format.ErrTruncated, r)
		_, err = format.DecodeHeader(good[:10])
		if err == nil {
			t.Errorf("%v: accepted without a role", r)
		}
		h.Descriptor.Partitions = 0
		_, err = format.DecodeHeader(h.Encode())
		expect.ErrorIs(t, err, format.ErrLayout, r)
	}
}

func TestKeys(t *testing.T) {
	lsn, ok := format.ParseLSN(format.AppendLSNKey(nil, 0x0102030405060708))
	if !ok || lsn != 0x0102030405060708 {
		t.Errorf("got %x, %v", lsn, ok)
	}
	if _, ok := format.ParseLSN([]byte("short")); ok {
		t.Error("a short key is an LSN")
	}
	for what, k := range map[string]struct{ got, want []byte }{
		"plog":       {format.AppendPLogKey([]byte{9}, 0x01020304, 5), []byte{9, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 5}},
		"workspaces": {format.AppendWorkspaceKey(nil, 0x0102), []byte{0, 0, 0, 0, 0, 0, 1, 2}},
		"packs":      {format.AppendPackKey(nil, 0x0102), []byte{0, 0, 0, 0, 0, 0, 1, 2}},
		"epochs":     {format.AppendPartitionKey(nil, 0x0102), []byte{0, 0, 1, 2}},
		"conflicts":  {format.ConflictKey{Place: storage.PlaceWLog, Workspace: 3, Seq: 4}.Append(nil), []byte{byte(storage.PlaceWLog), 0, 0, 0, 0, 0, 0, 0, 3, 0, 4}},
	} {
		expect.Equal(t, k.want, k.got, what)
	}
	expect.Equal(t, 0x01020304, format.Uint32([]byte{1, 2, 3, 4}))
}

func TestSealedUint(t *testing.T) {
	value := format.SealedUint([]byte("before"), format.BucketHeader, format.KeyProjected, 1<<60+7)[6:]
	n, err := format.UnsealUint(format.BucketHeader, format.KeyProjected, value)
	expect.NoError(t, err)
	expect.Equal(t, 1<<60+7, n)
	for i := range value {
		value[i] ^= 2
		if _, err := format.UnsealUint(format.BucketHeader, format.KeyProjected, value); err == nil {
			t.Errorf("a change of byte %d was not found", i)
		}
		value[i] ^= 2
	}
	_, err = format.UnsealUint(format.BucketHeader, format.KeyProjected, value[1:])
	expect.ErrorIs(t, err, format.ErrLayout)
}

func TestWitness(t *testing.T) {
	w := format.Witness{LSN: 1<<60 + 7, CRC: 1<<31 + 5}
	value := w.Encode()
	got, err := format.DecodeWitness(value)
	expect.NoError(t, err)
	expect.Equal(t, w, got)
	value[3] ^= 1
	_, err = format.DecodeWitness(value)
	expect.ErrorIs(t, err, format.ErrChecksum)
}

func TestConflictRefused(t *testing.T) {
	e := &storage.ConflictError{Place: storage.PlaceWLog, Partition: 3, PLogOffset: 4, LSN: 5, Workspace: 6, WLogOffset: 7}
	key := format.ConflictKeyOf(e).Append(nil)
	value := format.EncodeConflict(key, e)
	got, err := format.DecodeConflict(key, value)
	expect.NoError(t, err)
	expect.Equal(t, e, got)
	_, err = format.DecodeConflict(key[1:], value)
	expect.ErrorIs(t, err, format.ErrLayout)
	value[0] ^= 1
	_, err = format.DecodeConflict(key, value)
	expect.ErrorIs(t, err, format.ErrChecksum)
}

func TestDamagedEvent(t *testing.T) {
	err := format.DamagedEvent(9, 3, 4, format.ErrMissing)
	if err.Where != "bucket log, LSN 9" || err.Partition != 3 || err.PLogOffset != 4 || !errors.Is(err, format.ErrMissing) {
		t.Errorf("got %v", err)
	}
}
