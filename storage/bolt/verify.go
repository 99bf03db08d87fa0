package bolt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/partita-go/partita/storage"
	"github.com/partita-go/partita/storage/verify"
)

// Verify checks the store in a directory: the pages of its files, and then with
// [verify.Files] every invariant that they can show. It opens the files read-only and
// changes nothing; the store must not be open elsewhere for writing. A million
// workspaces or a hundred take the same memory, see [verify.Options].
//
// Faults of the store, damage included, are in the report, and so is that state.db is
// missing: then the others alone are checked. The error is for not being
// able to look: ErrLocked, ErrNotFound, ErrForeign, ErrFormat, those of the file system,
// and the context's.
func Verify(ctx context.Context, dir string, o verify.Options) (verify.Report, error) {
	report, err := verifyPages(ctx, dir, o)
	if err != nil || report.FaultCount > 0 {
		// A tree that is at fault cannot be trusted to end.
		return report, err
	}
	s, err := OpenExisting(ctx, dir, Options{ReadOnly: true})
	if errors.Is(err, ErrNoState) {
		return verifyLog(ctx, dir, o)
	}
	if err != nil {
		return damageReport(report, err)
	}
	m, err := newImage(s)
	if err == nil {
		report, err = verify.Files(ctx, m, o)
		m.close()
	}
	if err != nil {
		report, err = damageReport(report, err)
	}
	return report, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
}

// damageReport adds an error to the report if it says that the store is damaged.
func damageReport(r verify.Report, err error) (verify.Report, error) {
	damage, ok := errors.AsType[*storage.DamagedError](err)
	if !ok {
		return r, err
	}
	r.FaultCount++
	f := verify.Fault{Check: verify.CheckDamage, Where: damage.Where, Text: damage.Cause.Error(), Projection: ofState(damage.Where)}
	if damage.PLogOffset != 0 {
		f.Where, f.Partition, f.PLogOffset, f.Text = "", damage.Partition, damage.PLogOffset, fmt.Sprintf("%s: %v", damage.Where, damage.Cause)
	}
	r.Faults = append(r.Faults, f)
	return r, nil
}

// verifyPages checks the pages of the files.
func verifyPages(ctx context.Context, dir string, o verify.Options) (r verify.Report, err error) {
	if o.MaxFaults == 0 {
		o.MaxFaults = 100
	}
	op := &opening{Store: &Store{options: Options{ReadOnly: true}.WithDefaults()}, dir: dir}
	roles, err := op.rolesThere()
	if err != nil {
		return r, err
	}
	var paths []string
	for _, role := range roles {
		paths = append(paths, op.path(role.fileName()))
	}
	stop := readAhead(ctx, paths...)
	defer stop()
	for _, role := range roles {
		if err := op.verifyFile(ctx, role, o, &r); err != nil {
			return damageReport(r, err)
		}
	}
	return r, nil
}

// rolesThere returns which files are there. Opening says what it means that one is not.
func (op *opening) rolesThere() (roles []role, err error) {
	for _, role := range []role{roleLog, roleState, roleSubscriptions} {
		there, err := present(op.path(role.fileName()))
		if err != nil {
			return nil, err
		}
		if there {
			roles = append(roles, role)
		}
	}
	return roles, nil
}

// verifyFile checks the pages of a file.
func (op *opening) verifyFile(ctx context.Context, role role, o verify.Options, r *verify.Report) error {
	f, err := op.openFile(role, true)
	if err != nil {
		return err
	}
	fault := func(where, text string) {
		if r.FaultCount++; len(r.Faults) < o.MaxFaults {
			r.Faults = append(r.Faults, verify.Fault{Check: verify.CheckPages, Where: where, Text: text, Projection: role == roleState})
		}
	}
	progress := func(done, total uint64) {
		if o.Progress != nil {
			o.Progress(verify.Progress{Phase: verify.PhasePages, Done: done, Total: total, Faults: r.FaultCount})
		}
	}
	return errors.Join(f.checkPages(ctx, fault, progress), f.close())
}

// ofState reports whether a place is in state.db.
func ofState(where string) bool {
	place, _, _ := strings.Cut(where, ", ")
	return strings.HasSuffix(place, stateFileName)
}
