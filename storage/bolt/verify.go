package bolt

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
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
	report, strays, err := verifyPages(ctx, dir, o)
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
	case errors.Is(err, errOtherLog) && errors.As(err, &damage):
		report, err = verifyLog(ctx, dir, o, verify.Fault{Check: verify.CheckCheckpoint, Where: damage.Where, Projection: true, Text: damage.Cause.Error()})
		report.Unread = append(report.Unread, "what stands in "+format.StateFileName)
		return report, err
	}
	if err != nil {
		return damageReport(dir, report, err, &o)
	}
	m, err := newImage(s)
	if err == nil {
		report, err = verify.Files(ctx, m, o)
		m.close()
	}
	if err != nil {
		report, err = damageReport(dir, report, err, &o)
	}
	return report, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
}

// damageReport adds an error to the report if it says that the store is damaged: what stands
// in the files was not read then, or not to its end.
func damageReport(dir string, r verify.Report, err error, o *verify.Options) (verify.Report, error) {
	if err := addDamage(&r, err, o); err != nil {
		return r, err
	}
	r.Unread = append(r.Unread, unread(dir)...)
	return r, nil
}

// unread names what stands in the files of a store.
func unread(dir string) (all []string) {
	d, err := boltfile.OpenDirectory(dir)
	if err != nil {
		return []string{dir}
	}
	defer func() { _ = d.Close() }() // nothing was written
	for _, name := range []string{format.LogFileName, format.WALFileName, format.StateFileName, format.SubscriptionsFileName} {
		if there, err := d.PresentAs(name); there || err != nil {
			all = append(all, "what stands in "+name)
		}
	}
	return all
}

// addDamage adds an error to the report if it says that the store is damaged, and returns any
// other.
func addDamage(r *verify.Report, err error, o *verify.Options) error {
	damage, ok := errors.AsType[*storage.DamagedError](err)
	if !ok {
		return err
	}
	f := verify.Fault{Check: verify.CheckDamage, Where: damage.Where, Text: damage.Cause.Error(), Projection: ofState(damage.Where)}
	if errors.Is(err, errLostEnd) {
		f.Check = verify.CheckLogEnd
	}
	if damage.PLogOffset != 0 {
		f.Where, f.Partition, f.PLogOffset, f.Text = "", damage.Partition, damage.PLogOffset, fmt.Sprintf("%s: %v", damage.Where, damage.Cause)
	}
	r.Add(o, f)
	return nil
}

// verifyPages checks the pages of the files, one after the other: a fault of one does not keep
// the others from being checked. strays are keys that nobody knows; they are told last, since they
// keep nobody from reading on.
func verifyPages(ctx context.Context, dir string, o verify.Options) (r verify.Report, strays []verify.Fault, err error) {
	op := newReading()
	if err := op.holdDirectory(dir); err != nil {
		return r, nil, err
	}
	defer func() { err = errors.Join(err, op.abandon()) }()
	roles, err := op.rolesThere()
	if err != nil {
		return r, nil, err
	}
	var names []string
	for _, role := range roles {
		names = append(names, role.FileName())
	}
	stop := boltfile.ReadAhead(ctx, op.directory, names...)
	defer stop()
	// note takes what was found in a file. Once there is a fault, that another file cannot be
	// looked at is part of the report.
	note := func(name string, err error) error {
		err = addDamage(&r, err, &o)
		if err == nil || r.FaultCount == 0 || ctx.Err() != nil {
			return err
		}
		r.Unread = append(r.Unread, fmt.Sprintf("%s: %v", name, err))
		return nil
	}
	stray := func(f verify.Fault) { strays = append(strays, f) }
	soundLog := false
	for _, role := range roles {
		if err := note(role.FileName(), op.verifyFile(ctx, role, o, &r, stray)); err != nil {
			return r, strays, err
		}
		soundLog = soundLog || role == format.RoleLog && r.FaultCount == 0
	}
	if r.FaultCount == 0 {
		return r, strays, nil
	}
	if soundLog {
		err = note(format.WALFileName, op.verifyEnd())
	}
	r.Unread = append(r.Unread, unread(dir)...)
	return r, strays, err
}

// verifyEnd checks what log.wal has behind the end of log.db, and that the log has all of which state.db
// can say that it had. A damaged log.db does not say where its end is.
func (op *opening) verifyEnd() error {
	if err := op.openLogToRead(); err != nil {
		return err
	}
	_, err := op.readLogEnd()
	if err == nil {
		// What is wrong with state.db is told with its pages.
		_, _ = op.openState()
		err = op.checkEnd()
	}
	return err
}

// rolesThere returns which files are there. Opening says what it means that one is not.
func (op *opening) rolesThere() (roles []format.Role, err error) {
	for _, role := range []format.Role{format.RoleLog, format.RoleState, format.RoleSubscriptions} {
		there, err := op.directory.PresentAs(role.FileName())
		damaged := errors.Is(err, storage.ErrDamaged)
		if err != nil && !damaged {
			return nil, err
		}
		if there || damaged {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

// verifyFile checks the pages of a file, and what every open needs of it.
func (op *opening) verifyFile(ctx context.Context, role format.Role, o verify.Options, r *verify.Report, stray func(verify.Fault)) error {
	if _, err := op.directory.PresentAs(role.FileName()); err != nil {
		return err
	}
	f, err := op.openFile(role, true)
	if err != nil {
		return err
	}
	before := r.FaultCount
	fault := func(where, text string) {
		r.Add(&o, verify.Fault{Check: verify.CheckPages, Where: where, Text: text, Projection: role == format.RoleState})
	}
	progress := func(done, total uint64) {
		if o.Progress != nil {
			o.Progress(verify.Progress{Phase: verify.PhasePages, File: role.FileName(), Done: done, Total: total, Faults: r.FaultCount})
		}
	}
	err = f.CheckPages(ctx, fault, progress)
	switch {
	case err != nil:
	case r.FaultCount > before:
		err = f.CheckMeta(role)
	default:
		if _, err = f.ReadHeader(role); err == nil {
			err = f.CheckHeaderKeys(role, stray)
		}
	}
	return errors.Join(err, f.Close())
}

// ofState reports whether a place is in state.db.
func ofState(where string) bool {
	place, _, _ := strings.Cut(where, ", ")
	return strings.HasSuffix(place, format.StateFileName)
}
