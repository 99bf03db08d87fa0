package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// pkg is what `go list` says about a package.
type pkg struct {
	ImportPath, Dir                    string
	TestGoFiles, XTestGoFiles          []string
	Imports, TestImports, XTestImports []string
	Module                             struct{ Path string }
}

// goList returns what `go list` says at dir.
func goList(ctx context.Context, dir string, args ...string) ([]*pkg, error) {
	const fields = "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Module"
	return goListAs[pkg](ctx, dir, nil, append([]string{fields}, args...)...)
}

// goListAs is goList for other fields, with an environment, nil for that of the process.
func goListAs[P any](ctx context.Context, dir string, env []string, args ...string) (packages []*P, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), withStderr(err))
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(P)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
		}
		packages = append(packages, p)
	}
}
