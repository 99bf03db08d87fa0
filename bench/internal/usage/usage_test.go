package usage

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/prometheus/procfs"
)

func needProc(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("no /proc")
	}
}

func TestMemoryIncludesChildren(t *testing.T) {
	needProc(t)
	alone, err := ReadMemory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if alone.Anonymous <= 0 || alone.Resident < alone.Anonymous {
		t.Errorf("got %+v", alone)
	}
	child := exec.Command("cat")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = eachOf(os.Getpid(), func(p procfs.Proc) error {
		if p.PID == child.Process.Pid {
			seen++
		}
		return nil
	})
	if err != nil || seen != 1 {
		t.Errorf("got the child %d times and %v, want once", seen, err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}

func TestWrittenGrows(t *testing.T) {
	needProc(t)
	before, err := Written(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "file"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := Written(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if grown := after - before; grown < 1<<20 || grown > 2<<20 {
		t.Errorf("got %d bytes written, want %d", grown, 1<<20)
	}
}

func TestUnknownProcess(t *testing.T) {
	needProc(t)
	const nobody = 1 << 30
	if _, err := Written(nobody); err == nil {
		t.Error("written: got no error")
	}
	if _, err := StartSampler(t.Context(), nobody).Stop(); err == nil {
		t.Error("memory: got no error")
	}
}

func TestSizes(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"a": "12345", "sub/b": "123"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int64{"": 8, "a": 5, "sub": 3, "missing": 0} {
		got, err := SizeOf(filepath.Join(dir, name))
		if err != nil || got.Bytes != want {
			t.Errorf("%q: got %+v, %v, want %d bytes", name, got, err, want)
		}
	}
	if got := Total([]Size{{Bytes: 3}, {Bytes: 4}}); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}
