package bolt

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/format"
)

// What a copy goes into must be allowed to be written, not to be read.
func TestCopyBesideUnreadable(t *testing.T) {
	_, s := verifiableToRead(t)
	base := t.TempDir()
	above := mkdir(t, filepath.Join(base, "above"))
	noError(t, os.Chmod(above, 0o300))
	t.Cleanup(func() { noError(t, os.Chmod(above, 0o700)) })
	asNobody(t, base, above)
	if _, err := os.Lstat(filepath.Join(above, "x")); !errors.Is(err, os.ErrNotExist) {
		t.Skipf("nobody may not go where this test has its files: %v", err)
	}
	if _, err := os.ReadDir(above); err == nil {
		t.Skip("this process may read everything")
	}
	to := filepath.Join(above, "copy")
	_, err := s.Backup(t.Context(), to, CopyOptions{})
	noError(t, err)
	_, err = os.Stat(filepath.Join(to, format.LogFileName))
	noError(t, err)
}

// asNobody takes from this thread what root may do with files, up to the end of the test, and
// gives a directory to who it is then, who may reach it.
func asNobody(t *testing.T, base, dir string) {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() != 0 {
		return
	}
	noError(t, os.Chmod(filepath.Dir(base), 0o711))
	noError(t, os.Chown(dir, nobody, nobody))
	runtime.LockOSThread()
	noError(t, syscall.Setfsuid(nobody))
	t.Cleanup(func() {
		noError(t, syscall.Setfsuid(0))
		runtime.UnlockOSThread()
	})
}
