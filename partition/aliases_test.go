package partition_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewriteAliases = flag.Bool("rewrite-aliases", false, "write what the comments of aliases must say")

// TestAliasesTell: `go doc` says of an alias only what it stands for. So its comment lists the methods and fields of the
// type, and they are those that it has. With -rewrite-aliases the comments are written.
func TestAliasesTell(t *testing.T) {
	a := newAliases(t, "aliases.go", "errors.go")
	for _, file := range a.files {
		source, err := os.ReadFile(file.name)
		wants(t, file.name, err, nil)
		for _, s := range slices.Backward(file.specs) {
			source = a.document(source, s)
		}
		if now, err := os.ReadFile(file.name); err != nil || !bytes.Equal(now, source) {
			t.Errorf("%s: the comments are not what the types have: run go test ./partition -run TestAliasesTell -rewrite-aliases", file.name)
		}
		if *rewriteAliases {
			wants(t, file.name, os.WriteFile(file.name, source, 0o600), nil)
		}
	}
}

// aliases are those of some files, and the packages that they are of.
type aliases struct {
	t     *testing.T
	set   *token.FileSet
	files []aliasFile
	// names are the aliases' own, by what they stand for, as in "actors.Key".
	names map[string]string
	// packages have the files of packages, by their names.
	packages map[string][]*ast.File
}

type aliasFile struct {
	name  string
	specs []*ast.TypeSpec
}

func newAliases(t *testing.T, names ...string) *aliases {
	t.Helper()
	a := &aliases{t: t, set: token.NewFileSet(), names: make(map[string]string), packages: make(map[string][]*ast.File)}
	for _, name := range names {
		f, err := parser.ParseFile(a.set, name, nil, parser.ParseComments)
		wants(t, name, err, nil)
		file := aliasFile{name: name}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && s.Assign.IsValid() {
				file.specs = append(file.specs, s)
				a.names[types.ExprString(s.Type)] = s.Name.Name
			}
			return true
		})
		a.files = append(a.files, file)
	}
	// What package actors takes over from base has the same names there.
	for dir, name := range map[string]string{"actors": "actors", "actors/base": "actors", "messages": "messages"} {
		paths, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		wants(t, dir, err, nil)
		for _, path := range paths {
			f, err := parser.ParseFile(a.set, path, nil, 0)
			wants(t, path, err, nil)
			if f.Name.Name == filepath.Base(dir) {
				a.packages[name] = append(a.packages[name], f)
			}
		}
	}
	return a
}

// document puts into an alias's comment what its type has.
func (a *aliases) document(source []byte, s *ast.TypeSpec) []byte {
	from, to := a.set.Position(s.Doc.Pos()).Offset, a.set.Position(s.Doc.End()).Offset
	var prose []string
	for _, c := range s.Doc.List {
		if !strings.HasPrefix(c.Text, "//\t") {
			prose = append(prose, c.Text)
		}
	}
	text := strings.TrimSuffix(strings.Join(prose, "\n\t"), "\n\t//")
	if lines := a.lines(s); len(lines) > 0 {
		text += "\n\t//\n\t//\t" + strings.Join(lines, "\n\t//\t")
	}
	return slices.Concat(source[:from], []byte(text), source[to:])
}

// lines are the fields, parameters and methods of what an alias stands for.
func (a *aliases) lines(s *ast.TypeSpec) (all []string) {
	pkg, name, _ := strings.Cut(types.ExprString(s.Type), ".")
	var methods []string
	for _, f := range a.packages[pkg] {
		for _, d := range f.Decls {
			if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && m.Name.IsExported() && a.text(pkg, m.Recv.List[0].Type) == s.Name.Name {
				methods = append(methods, a.line("func ("+types.ExprString(m.Recv.List[0].Type)+") "+m.Name.Name, pkg, m.Type))
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if d, ok := n.(*ast.TypeSpec); ok && d.Name.Name == name {
				all = append(all, a.contents(pkg, d.Type)...)
			}
			return true
		})
	}
	slices.Sort(methods)
	for i := range methods {
		methods[i] = strings.Replace(methods[i], name+")", s.Name.Name+")", 1)
	}
	return append(all, methods...)
}

// contents are the fields of a struct, the methods of an interface, or the parameters of a function.
func (a *aliases) contents(pkg string, e ast.Expr) (all []string) {
	list := func(fields *ast.FieldList) {
		for _, f := range fields.List {
			for _, n := range f.Names {
				if function, ok := f.Type.(*ast.FuncType); ok && n.IsExported() {
					all = append(all, a.line(n.Name, pkg, function))
				} else if text := a.text(pkg, f.Type); text == n.Name {
					all = append(all, n.Name+" "+types.ExprString(f.Type)) // not the same word twice
				} else if n.IsExported() {
					all = append(all, n.Name+" "+text)
				}
			}
			if len(f.Names) == 0 {
				all = append(all, a.text(pkg, f.Type))
			}
		}
	}
	switch d := e.(type) {
	case *ast.StructType:
		list(d.Fields)
	case *ast.InterfaceType:
		list(d.Methods)
	case *ast.FuncType:
		all = append(all, a.text(pkg, d))
	}
	return all
}

// line is a function with its name.
func (a *aliases) line(name, pkg string, f *ast.FuncType) string {
	parameters, results := *f, ast.FuncType{Params: &ast.FieldList{}}
	parameters.Results = nil
	line := name + strings.TrimPrefix(a.text(pkg, &parameters), "func")
	if f.Results != nil {
		results.Results = f.Results
		line += strings.TrimPrefix(a.text(pkg, &results), "func()")
	}
	return line
}

var typeNames = regexp.MustCompile(`(\w+\.)?\b[A-Z]\w*`)

// text is a type of a package, as somebody who imports package partition writes it.
func (a *aliases) text(pkg string, e ast.Expr) string {
	return strings.TrimPrefix(typeNames.ReplaceAllStringFunc(types.ExprString(e), func(name string) string {
		if !strings.Contains(name, ".") {
			name = fmt.Sprintf("%s.%s", pkg, name)
		}
		if own := a.names[name]; own != "" {
			return own
		}
		return name
	}), "*")
}
