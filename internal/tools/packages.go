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
func goList(ctx context.Context, dir string, args ...string) (packages []*pkg, err error) {
	const fields = "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Module"
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", fields}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), withStderr(err))
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(pkg)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list %s: %w", strings.Join(args, " "), err)
		}
		packages = append(packages, p)
	}
}
