package bolt

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/check"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/verify"
)

// Verify checks the store in a directory: the pages of its files, and then with
// [verify.Files] every invariant that they can show. It opens the files read-only and
// changes nothing; the store must not be open elsewhere for writing. A million
// workspaces or a hundred take the same memory, see [verify.Options].
//
// Faults of the store, damage included, are in the report, and so is that state.db is
// missing: then the others alone are checked. If a file cannot be read as a whole the others' pages
// are checked still, and the report says what was not looked at. The error is for not being
// able to look: ErrLocked, ErrNotFound, ErrForeign, ErrFormat, those of the file system,
// and the context's.
func Verify(ctx context.Context, dir string, o verify.Options) (verify.Report, error) {
	report, strays, err := check.Pages(ctx, dir, reading(), o)
	// A tree that is at fault cannot be trusted to end.
	if err == nil && report.FaultCount == 0 {
		report, err = verifyContents(ctx, dir, o)
	}
	for _, f := range strays {
		report.Add(&o, f)
	}
	return report, err
}

// verifyContents checks what stands in files whose pages are sound.
func verifyContents(ctx context.Context, dir string, o verify.Options) (report verify.Report, err error) {
	s, err := OpenExisting(ctx, dir, Options{ReadOnly: true})
	switch damage := (*storage.DamagedError)(nil); {
	case errors.Is(err, ErrNoState):
		return verifyLog(ctx, dir, o, verify.Fault{
			Check: verify.CheckMissing, Where: "file " + filepath.Join(dir, format.StateFileName), Projection: true,
			Text: "it is not there, so the indexes, records, last numbers, checkpoints and deduplication ids were not checked; the next start rebuilds it from " + format.LogFileName,
		})
	case errors.Is(err, files.ErrOtherLog) && errors.As(err, &damage):
		report, err = verifyLog(ctx, dir, o, verify.Fault{Check: verify.CheckCheckpoint, Where: damage.Where, Projection: true, Text: damage.Cause.Error()})
		report.Unread = append(report.Unread, "what stands in "+format.StateFileName)
		return report, err
	}
	if err != nil {
		return check.AddDamage(dir, report, err, &o)
	}
	m, err := check.NewImage(s.files, s.Register)
	if err == nil {
		report, err = verify.Files(ctx, m, o)
		m.Close()
	}
	if err != nil {
		report, err = check.AddDamage(dir, report, err, &o)
	}
	ids, idsErr := s.files.OpenIDs(ctx) // its contents were checked with its pages; it may be another store's
	if ids != nil {
		idsErr = ids.Close()
	}
	if damage, ok := errors.AsType[*storage.DamagedError](idsErr); ok { // it is gone
		report.Add(&o, verify.Fault{Check: verify.CheckDamage, Where: damage.Where, Text: damage.Cause.Error()})
		idsErr = nil
	}
	return report, errors.Join(err, idsErr, s.Close(context.WithoutCancel(ctx)))
}

// verifyLog checks log.db alone, and says why the rest is not looked at.
func verifyLog(ctx context.Context, dir string, o verify.Options, why verify.Fault) (r verify.Report, err error) {
	l, err := OpenLog(ctx, dir)
	if err != nil {
		r.AddFirst(&o, why)
		return check.AddDamage(dir, r, err, &o)
	}
	m, err := check.NewLogImage(ctx, l.files, l.epochs)
	if err == nil {
		o.LogOnly = true
		r, err = verify.Files(ctx, m, o)
	}
	m.Close()
	if err != nil {
		r, err = check.AddDamage(dir, r, err, &o)
	}
	r.AddFirst(&o, why)
	return r, errors.Join(err, l.Close())
}
