package check

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/bolt/internal/boltfile"
	"github.com/partita-go/partita/storage/bolt/internal/files"
	"github.com/partita-go/partita/storage/bolt/internal/format"
	"github.com/partita-go/partita/storage/bolt/internal/idsdb"
	"github.com/partita-go/partita/storage/verify"
)

// AddDamage adds an error to the report if it says that the store is damaged: what stands
// in the files was not read then, or not to its end.
func AddDamage(dir string, r verify.Report, err error, o *verify.Options) (verify.Report, error) {
	if err := addFault(&r, err, o); err != nil {
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
	for _, name := range []string{
		format.LogFileName, format.WALFileName, format.StateFileName, format.SubscriptionsFileName, format.IDsFileName,
	} {
		if there, err := d.PresentAs(name); there || err != nil {
			all = append(all, "what stands in "+name)
		}
	}
	return all
}

// addFault adds an error to the report if it says that the store is damaged, and returns any
// other.
func addFault(r *verify.Report, err error, o *verify.Options) error {
	damage, ok := errors.AsType[*storage.DamagedError](err)
	if !ok {
		return err
	}
	f := verify.Fault{
		Check: verify.CheckDamage, Where: damage.Where, Text: damage.Cause.Error(), Projection: ofState(damage.Where),
	}
	if errors.Is(err, files.ErrLostEnd) {
		f.Check = verify.CheckLogEnd
	}
	if damage.PLogOffset != 0 {
		f.Where, f.Text = "", fmt.Sprintf("%s: %v", damage.Where, damage.Cause)
		f.Partition, f.PLogOffset = damage.Partition, damage.PLogOffset
	}
	r.Add(o, f)
	return nil
}

// Pages checks the pages of the files, one after the other: a fault of one does not keep
// the others from being checked. strays are keys that nobody knows; they are told last, since they
// keep nobody from reading on.
func Pages(
	ctx context.Context, dir string, of files.Options, o verify.Options,
) (r verify.Report, strays []verify.Fault, err error) {
	held, err := files.Hold(dir, of)
	if err != nil {
		return r, nil, err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	roles, err := held.RolesThere()
	if err != nil {
		return r, nil, err
	}
	var names []string
	for _, role := range roles {
		names = append(names, role.FileName())
	}
	stop := boltfile.ReadAhead(ctx, held.Directory, names...)
	defer stop()
	// note takes what was found in a file. Once there is a fault, that another file cannot be
	// looked at is part of the report.
	note := func(name string, err error) error {
		err = addFault(&r, err, &o)
		if err == nil || r.FaultCount == 0 || ctx.Err() != nil {
			return err
		}
		r.Unread = append(r.Unread, fmt.Sprintf("%s: %v", name, err))
		return nil
	}
	stray := func(f verify.Fault) { strays = append(strays, f) }
	soundLog := false
	for _, role := range roles {
		if err := note(role.FileName(), verifyFile(ctx, held, role, o, &r, stray)); err != nil {
			return r, strays, err
		}
		soundLog = soundLog || role == format.RoleLog && r.FaultCount == 0
	}
	if r.FaultCount == 0 {
		return r, strays, nil
	}
	if soundLog {
		err = note(format.WALFileName, held.CheckEnd())
	}
	r.Unread = append(r.Unread, unread(dir)...)
	return r, strays, err
}

// verifyFile checks the pages of a file, and what every open needs of it.
func verifyFile(
	ctx context.Context, held *files.Set, role format.Role, o verify.Options, r *verify.Report, stray func(verify.Fault),
) error {
	if _, err := held.Directory.PresentAs(role.FileName()); err != nil {
		return err
	}
	f, err := held.OpenFile(role, true)
	if err != nil {
		return err
	}
	before := r.FaultCount
	fault := func(where, text string) {
		r.Add(&o, verify.Fault{Check: verify.CheckPages, Where: where, Text: text, Projection: role == format.RoleState})
	}
	progress := func(done, total uint64) {
		if o.Progress != nil {
			o.Progress(verify.Progress{
				Phase: verify.PhasePages, File: role.FileName(), Done: done, Total: total, Faults: r.FaultCount,
			})
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
		if err == nil && role == format.RoleIDs {
			err = idsdb.Check(f)
		}
	}
	return errors.Join(err, f.Close())
}

// ofState reports whether a place is in state.db.
func ofState(where string) bool {
	place, _, _ := strings.Cut(where, ", ")
	return strings.HasSuffix(place, format.StateFileName)
}
