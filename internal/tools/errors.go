package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// knownError is an error that users can name: a variable, or a type that no variable stands for.
type knownError struct {
	// pkg is the directory of the package that declares it, group what it says of the errors beside it.
	pkg, group, name string
	// meaning, from and do are what its comment says: what it is, who returns it, and what to do.
	meaning, from, do string
	// also are its other names, types what it can be besides.
	also, types []string
}

// short is the error's name with its package's.
func (e *knownError) short() string { return path.Base(e.pkg) + "." + e.name }

// catalogue is what a module says of its errors.
type catalogue struct {
	errors []*knownError
	// aliases, types and stands are by short name: what a name is another one of, the error types, and for
	// which error a type stands.
	aliases map[string]string
	types   map[string]*knownError
	stands  map[string]string
	// names are those of all functions, methods, types and fields.
	names map[string]bool
	wrong []error
}

// outside are the directories that users import nothing from.
var outside = []string{"bin", "bench", "cmd", "internal", "testdata", "tests", "tools"}

// readErrors reads the packages below a directory that users can import.
func readErrors(root string) (*catalogue, error) {
	c := &catalogue{
		aliases: make(map[string]string), types: make(map[string]*knownError),
		stands: make(map[string]string), names: make(map[string]bool),
	}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (slices.Contains(outside, entry.Name()) || strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		c.read(filepath.ToSlash(dir), filepath.Base(name), file)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("errors: %w", err)
	}
	c.join()
	return c, errors.Join(c.wrong...)
}

func (c *catalogue) fail(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Errorf("errors: "+format, args...))
}

// read takes what one file declares.
func (c *catalogue) read(dir, base string, file *ast.File) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			c.names[d.Name.Name] = true
			c.readMethod(dir, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					c.readType(dir, spec, cmp.Or(spec.Doc, d.Doc))
				case *ast.ValueSpec:
					c.readVar(dir, base, spec, d)
				}
			}
		}
	}
}

// readVar takes a variable of a group, if it is an error. All are in one file of their package.
func (c *catalogue) readVar(dir, base string, spec *ast.ValueSpec, group *ast.GenDecl) {
	name := spec.Names[0].Name
	if group.Tok != token.VAR || !strings.HasPrefix(strings.ToLower(name), "err") || len(spec.Values) != 1 {
		return
	}
	if base != "errors.go" {
		c.fail("%s/%s declares %s: want it in errors.go", dir, base, name)
	}
	if !spec.Names[0].IsExported() {
		return
	}
	e := &knownError{pkg: dir, name: name, group: firstSentence(group.Doc.Text())}
	// What a room below declares is told where users can name it.
	told := strings.Contains(spec.Doc.Text(), "\nFrom: ")
	if of, ok := spec.Values[0].(*ast.SelectorExpr); ok && !told {
		c.aliases[e.short()] = selector(of)
		return
	}
	if !group.Lparen.IsValid() {
		e.group = ""
	}
	c.describe(e, cmp.Or(spec.Doc, group.Doc).Text())
	c.errors = append(c.errors, e)
}

// readType takes a type, which may be an error, and what it is made of.
func (c *catalogue) readType(dir string, spec *ast.TypeSpec, doc *ast.CommentGroup) {
	e := &knownError{pkg: dir, name: spec.Name.Name}
	c.names[e.name] = true
	ast.Inspect(spec.Type, func(node ast.Node) bool {
		if f, ok := node.(*ast.Field); ok {
			for _, n := range f.Names {
				c.names[n.Name] = true
			}
		}
		return true
	})
	if !spec.Name.IsExported() || !strings.HasSuffix(e.name, "Error") {
		return
	}
	if of, ok := spec.Type.(*ast.SelectorExpr); ok {
		c.aliases[e.short()] = selector(of)
		return
	}
	e.meaning = doc.Text()
	c.types[e.short()] = e
}

// readMethod learns from a method Is for which error its type stands.
func (c *catalogue) readMethod(dir string, f *ast.FuncDecl) {
	if f.Recv == nil || f.Name.Name != "Is" || len(f.Body.List) != 1 {
		return
	}
	returned, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok {
		return
	}
	equal, ok := returned.Results[0].(*ast.BinaryExpr)
	of, isPointer := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok || !isPointer {
		return
	}
	short := func(e ast.Expr) string {
		if other, ok := e.(*ast.SelectorExpr); ok {
			return selector(other)
		}
		return path.Base(dir) + "." + e.(*ast.Ident).Name //nolint:errcheck // it is a name
	}
	c.stands[short(of.X)] = short(equal.Y)
}

func selector(e *ast.SelectorExpr) string {
	return e.X.(*ast.Ident).Name + "." + e.Sel.Name //nolint:errcheck // it is a package's
}

// describe takes a comment apart. One that does not say all is wrong.
func (c *catalogue) describe(e *knownError, text string) {
	meaning, rest, _ := strings.Cut(text, "\nFrom: ")
	from, do, _ := strings.Cut(rest, "\nDo: ")
	e.meaning, e.from, e.do = plain(meaning), plain(from), plain(do)
	if e.meaning == "" || e.from == "" || e.do == "" {
		c.fail("%s: its comment must say what it is, and then, each on a line, 'From: ' and 'Do: '", e.short())
	}
}

// plain is the text of a comment on one line, without the signs of links.
func plain(text string) string {
	return strings.NewReplacer("[*", "", "[", "", "]", "").Replace(strings.Join(strings.Fields(text), " "))
}

func firstSentence(text string) string {
	text, _, _ = strings.Cut(plain(text), ". ")
	return strings.TrimSuffix(text, ".")
}

// join gives each error its types and other names. A type that stands for none is an error by itself.
func (c *catalogue) join() {
	byName := make(map[string]*knownError)
	for _, e := range c.errors {
		byName[e.short()] = e
	}
	for _, name := range slices.Sorted(maps.Keys(c.types)) {
		e := c.types[name]
		if of := byName[c.stands[name]]; of != nil {
			of.types = append(of.types, name)
			continue
		}
		c.describe(e, e.meaning)
		e.group = "Types that no variable stands for"
		c.errors = append(c.errors, e)
		byName[name] = e
	}
	for name, of := range c.aliases {
		switch {
		case byName[of] != nil:
			byName[of].also = append(byName[of].also, name)
		case byName[c.stands[of]] != nil:
			byName[c.stands[of]].types = append(byName[c.stands[of]].types, name)
		default:
			c.fail("%s is another name of %s, which is not there", name, of)
		}
	}
	for _, e := range c.errors {
		slices.Sort(e.also)
		slices.Sort(e.types)
		c.checkNames(e)
	}
}

// printErrors prints the page of the errors of the module at root.
func printErrors(root string, stdout io.Writer) error {
	c, err := readErrors(root)
	if err != nil {
		return err
	}
	statuses, err := readStatuses(filepath.Join(root, "httpapi"))
	if err != nil {
		return fmt.Errorf("errors: %w", err)
	}
	_, err = io.WriteString(stdout, c.page(statuses))
	return err
}
