package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// units are how a default is spelled in Go, and in comments.
var units = map[string]time.Duration{
	"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour,
}

// spellings are how a comment may write a default that the code spells like this; none if it is not constant.
func spellings(code string) (all []string) {
	isTime := strings.Contains(code, "time.")
	for name, unit := range units {
		code = strings.ReplaceAll(code, name, fmt.Sprint(int64(unit)))
	}
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, code)
	if err != nil || value.Value == nil || value.Value.Kind() != constant.Int {
		return nil
	}
	n, _ := constant.Int64Val(value.Value)
	suffixes := map[string]int64{"": 1, " KiB": 1 << 10, " MiB": 1 << 20, " GiB": 1 << 30}
	if isTime {
		suffixes = map[string]int64{" ms": 1e6, " s": 1e9, " min": 60e9, " h": 3600e9}
	}
	for suffix, unit := range suffixes {
		if n%unit == 0 {
			all = append(all, " "+withCommas(n/unit)+suffix)
		}
	}
	return all
}

func withCommas(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", withCommas(n/1000), n%1000)
}

// fieldDocs returns the comments of the fields of all structs. A field without one has that of the field before it.
func fieldDocs(file *ast.File, docs map[string]string) {
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		doc := ""
		for _, f := range fields.Fields.List {
			if text := plain(f.Doc.Text()); text != "" {
				doc = text
			}
			for _, n := range f.Names {
				docs[spec.Name.Name+"."+n.Name] = doc
			}
		}
		return true
	})
}

// untold returns the defaults of methods WithDefaults that the comment of their field does not tell, and how many
// there are.
func untold(file *ast.File, docs map[string]string) (without []string, defaults int) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "WithDefaults" {
			continue
		}
		of := types.ExprString(f.Recv.List[0].Type)
		ast.Inspect(f.Body, func(node ast.Node) bool {
			call, ok := node.(*ast.CallExpr)
			if !ok || types.ExprString(call.Fun) != "cmp.Or" {
				return true
			}
			field, ok := call.Args[0].(*ast.SelectorExpr)
			want := spellings(types.ExprString(call.Args[1]))
			if !ok || want == nil {
				return true
			}
			defaults++
			_, told, _ := strings.Cut(docs[of+"."+field.Sel.Name], "Default")
			if regexp.MustCompile("(" + strings.Join(want, "|") + `)([.:]|,? and|, | on )`).MatchString(told + " ") {
				return true
			}
			without = append(without, of+"."+field.Sel.Name+":"+want[0])
			return true
		})
	}
	return without, defaults
}

// The comment of a setting tells the default that the code gives it.
func TestDefaultsAreTold(t *testing.T) {
	total := 0
	for _, dir := range []string{"httpapi", "messages", "partition", "storage/bolt", "storage/verify"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		docs := make(map[string]string)
		var files []*ast.File
		for _, path := range paths {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			fieldDocs(file, docs)
			files = append(files, file)
		}
		for _, file := range files {
			without, n := untold(file, docs)
			total += n
			for _, w := range without {
				t.Errorf("%s: the comment does not tell the default of %s", dir, w)
			}
		}
	}
	if total < 30 {
		t.Errorf("got %d defaults, want all", total)
	}
}
