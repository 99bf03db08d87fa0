package copies_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/partita-go/partita/storage/bolt/internal/copies"
	"github.com/partita-go/partita/storage/bolt/internal/expect"
)

// What a copy goes into must be allowed to be written, not to be read.
func TestIntoBesideUnreadable(t *testing.T) {
	base := t.TempDir()
	above := mkdir(t, filepath.Join(base, "above"))
	expect.NoError(t, os.Chmod(above, 0o300))
	t.Cleanup(func() { expect.NoError(t, os.Chmod(above, 0o700)) })
	asNobody(t, base, above)
	if _, err := os.Lstat(filepath.Join(above, "x")); !errors.Is(err, os.ErrNotExist) {
		t.Skipf("nobody may not go where this test has its files: %v", err)
	}
	if _, err := os.ReadDir(above); err == nil {
		t.Skip("this process may read everything")
	}
	to := filepath.Join(above, "copy")
	expect.NoError(t, copies.Into(to, filled))
	expect.Equal(t, []string{"file"}, names(t, to))
}

// asNobody takes from this thread what root may do with files, up to the end of the test, and
// gives a directory to who it is then, who may reach it.
func asNobody(t *testing.T, base, dir string) {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() != 0 {
		return
	}
	expect.NoError(t, os.Chmod(filepath.Dir(base), 0o711))
	expect.NoError(t, os.Chown(dir, nobody, nobody))
	runtime.LockOSThread()
	expect.NoError(t, syscall.Setfsuid(nobody))
	t.Cleanup(func() {
		expect.NoError(t, syscall.Setfsuid(0))
		runtime.UnlockOSThread()
	})
}
