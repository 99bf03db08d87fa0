package idsdb

import (
	"encoding/binary"
	"fmt"
	"math"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// closed is the last number of a launch that gives none any more.
const closed = math.MaxUint32

// Next gives each of some generators the next number of its launch, in one commit: they are durable when it returns. A launch
// that gives none any more has the largest number for ever.
func Next(f *boltfile.File, all ...*format.Generator) error {
	return f.Update(func(tx *bbolt.Tx) error {
		for _, g := range all {
			err := update(f, tx, g.Launch, func(last uint64) uint64 {
				last = min(last+1, closed)
				g.Number = uint32(last)
				return last
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Raise lets launches give none of some numbers any more, nor any before them. It is written although it may be there: who
// wrote it may not know whether the disk has it.
func Raise(f *boltfile.File, all []format.Generator) error {
	return f.Update(func(tx *bbolt.Tx) error {
		for _, g := range all {
			err := update(f, tx, g.Launch, func(last uint64) uint64 { return max(last, uint64(g.Number)) })
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// update lets a launch, which need not be there, have another last number.
func update(f *boltfile.File, tx *bbolt.Tx, launch uint32, next func(last uint64) uint64) error {
	last, count, err := look(f, tx, launch)
	if err != nil {
		return err
	}
	if last == 0 {
		if err := PutCount(tx, count+1); err != nil {
			return err
		}
	}
	return put(tx, keyOf(launch), next(last))
}

// Check makes sure that all launches are there, and whole.
func Check(f *boltfile.File) error {
	return f.View(func(tx *bbolt.Tx) error {
		_, _, err := look(f, tx, 0)
		return err
	})
}

// Close makes all launches that are there ones that give no number any more.
func Close(f *boltfile.File) error {
	return f.Update(func(tx *bbolt.Tx) error {
		var keys [][]byte
		err := tx.Bucket(format.BucketLaunches).ForEach(func(k, _ []byte) error {
			keys = append(keys, k)
			return nil
		})
		for i := 0; err == nil && i < len(keys); i++ {
			err = put(tx, keys[i], closed)
		}
		return err
	})
}

// Launch is one that has numbered generators.
type Launch struct {
	Launch uint32
	// Last is the number of its last generator. The largest uint32 means that it gives none any more.
	Last uint32
}

// Launches returns all that are there, in their order.
func Launches(f *boltfile.File) (all []Launch, err error) {
	err = f.View(func(tx *bbolt.Tx) error {
		if _, _, err := look(f, tx, 0); err != nil {
			return err
		}
		return tx.Bucket(format.BucketLaunches).ForEach(func(k, v []byte) error {
			last, err := format.UnsealUint(format.BucketLaunches, k, v)
			all = append(all, Launch{format.Uint32(k), uint32(last)})
			return err
		})
	})
	return all, err
}

// look returns the last number of a launch, 0 if there is none, and how many launches there are. It looks at all of them: a
// launch that has lost its key would begin again at 1.
func look(f *boltfile.File, tx *bbolt.Tx, launch uint32) (last, count uint64, err error) {
	damaged := func(bucket []byte, cause error, place string, args ...any) error {
		return &storage.DamagedError{Where: f.PlaceOf(bucket, place, args...), Cause: cause}
	}
	before := int64(-1)
	err = tx.Bucket(format.BucketLaunches).ForEach(func(k, v []byte) error {
		n, err := format.UnsealUint(format.BucketLaunches, k, v)
		switch {
		case err != nil:
		case len(k) != format.LaunchKeyLen || n < 1 || n > closed:
			err = format.ErrLayout
		case int64(format.Uint32(k)) <= before:
			err = format.ErrMisplaced
		}
		if err != nil {
			return damaged(format.BucketLaunches, err, "launch %x", k)
		}
		count, before = count+1, int64(format.Uint32(k))
		if format.Uint32(k) == launch {
			last = n
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	want, err := format.UnsealUint(format.BucketHeader, format.KeyLaunches, tx.Bucket(format.BucketHeader).Get(format.KeyLaunches))
	switch {
	case err != nil:
		return 0, 0, damaged(format.BucketHeader, err, "%s", format.KeyLaunches)
	case count != want:
		return 0, 0, damaged(format.BucketLaunches, fmt.Errorf("got %d launches, want %d", count, want), "the bucket")
	}
	return last, count, nil
}

// PutCount writes how many launches there are.
func PutCount(tx *bbolt.Tx, n uint64) error {
	value := format.SealedUint(nil, format.BucketHeader, format.KeyLaunches, n)
	return tx.Bucket(format.BucketHeader).Put(format.KeyLaunches, value)
}

func put(tx *bbolt.Tx, key []byte, n uint64) error {
	return tx.Bucket(format.BucketLaunches).Put(key, format.SealedUint(nil, format.BucketLaunches, key, n))
}

func keyOf(launch uint32) []byte { return binary.BigEndian.AppendUint32(nil, launch) }
