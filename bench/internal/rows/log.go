package rows

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"github.com/partita-go/partita/bench/internal/usage"
)

// The settings of the log of a partita store.
const (
	logFill  = 1.0
	logMmap  = min(8<<30, math.MaxInt)
	lockTime = time.Second
)

var bucketLog = []byte("log")

// boltLog is one bbolt bucket of values under 1, 2, 3 …
type boltLog struct {
	db   *bbolt.DB
	last uint64
}

func openBoltLog(dir string) (*boltLog, error) {
	db, err := bbolt.Open(filepath.Join(dir, "log.db"), 0o600, &bbolt.Options{
		Timeout:         lockTime,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: logMmap,
		NoStatistics:    true,
	})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(bucketLog)
		return err
	})
	return &boltLog{db: db}, err
}

// append writes values in one transaction and returns the number of the first.
func (l *boltLog) append(values ...[]byte) (uint64, error) {
	first := l.last + 1
	err := l.db.Update(func(tx *bbolt.Tx) error {
		log := tx.Bucket(bucketLog)
		log.FillPercent = logFill
		for i, value := range values {
			if err := log.Put(logKey(first+uint64(i)), value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	l.last += uint64(len(values))
	return first, nil
}

func logKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64(nil, number)
}

// stored counts the values, which must lie under 1, 2, 3 … and have their size.
func (l *boltLog) stored(ctx context.Context, size int) (uint64, error) {
	number := uint64(0)
	err := l.db.View(func(tx *bbolt.Tx) error {
		entries := tx.Bucket(bucketLog).Cursor()
		for k, v := entries.First(); k != nil && ctx.Err() == nil; k, v = entries.Next() {
			number++
			if len(k) != 8 || binary.BigEndian.Uint64(k) != number || len(v) != size {
				return fmt.Errorf("log entry %d: got key %x and %d bytes, want key %x and %d bytes", number, k, len(v), logKey(number), size)
			}
		}
		return ctx.Err()
	})
	return number, err
}

func (l *boltLog) sizes() ([]usage.Size, error) {
	size, err := usage.SizeOf(l.db.Path())
	return []usage.Size{size}, err
}

// boltVersion is the version that this program was built with.
func boltVersion() string { return moduleVersion("go.etcd.io/bbolt") }

func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "of unknown version"
}
