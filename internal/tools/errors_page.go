package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// errorsIntro is what the page of the errors begins with.
const errorsIntro = `# Errors

Each error that you can name: what it is, who returns it, and what to do. The text of an error that you get says more,
and names the place. Ask "errors.Is" which one it is, and "errors.AsType" for what a type has to say.

HTTP says which problem the [HTTP API](http.md#problems) answers. If an error is several of these, the first one in
httpapi/errors.go counts. Over HTTP a conflict of a record is [record-exists](http.md#record-exists), and a record that
is ahead is [invalid-event](http.md#invalid-event). An error for which nothing is said is [internal](http.md#internal),
or is not met over HTTP.

This page is made of the comments in the code, by "make errors". A test compares the two.
`

// page returns the page of all errors.
func (c *catalogue) page(problems map[string][]string) string {
	slices.SortStableFunc(c.errors, func(a, b *knownError) int { return strings.Compare(a.pkg, b.pkg) })
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(errorsIntro, `"`, "`"))
	pkg, group := "", ""
	for _, e := range c.errors {
		if e.pkg != pkg {
			pkg, group = e.pkg, ""
			fmt.Fprintf(&b, "\n## Package %s\n", pkg)
		}
		if e.group != group {
			group = e.group
			b.WriteString("\n" + wrapped("", "**"+group+".**"))
		}
		b.WriteString("\n" + e.entry(problems[e.short()]))
	}
	return b.String()
}

// entry is what the page says of an error, and how HTTP answers it.
func (e *knownError) entry(problems []string) string {
	var more []string
	for _, name := range e.also {
		more = append(more, "also `"+name+"`")
	}
	for _, name := range e.types {
		more = append(more, "type `*"+name+"`")
	}
	if len(problems) > 0 {
		more = append(more, "HTTP "+strings.Join(problems, " or "))
	}
	text := "### " + e.short() + "\n\n"
	if len(more) > 0 {
		text += wrapped("", capital(strings.Join(more, ", "))+".") + "\n"
	}
	meaning := strings.TrimPrefix(strings.TrimPrefix(e.meaning, e.name+" "), "is returned ")
	return text + wrapped("- ", capital(meaning)) + wrapped("- ", "From: "+e.from) + wrapped("- ", "Do: "+e.do)
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// wrapped breaks a text into lines, of which the first begins as it is told.
func wrapped(first, text string) string {
	var b strings.Builder
	line := first
	for word := range strings.FieldsSeq(text) {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > proseWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", len(first))
		}
		if strings.TrimSpace(line) != "" && !strings.HasSuffix(line, " ") {
			line += " "
		}
		line += word
	}
	return b.String() + line + "\n"
}

// mention matches what a comment says of who returns an error: functions, methods and fields begin with a
// capital, in the middle of a sentence too.
var mention = regexp.MustCompile(`\b[A-Z]\w+`)

// checkNames finds what returns an error and is not there.
func (c *catalogue) checkNames(e *knownError) {
	for _, name := range mention.FindAllString(e.from, -1) {
		if !c.names[name] && !strings.HasPrefix(name, "Err") {
			c.fail("%s: its comment says that it comes from %s, which is not there", e.short(), name)
		}
	}
}

// readStatuses returns how package httpapi, in a directory, answers errors: by the error's short name, status and
// problem.
func readStatuses(dir string) (map[string][]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	kinds := make(map[string]string)
	answered := make(map[string][]string)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				readKind(node, kinds)
			case *ast.CompositeLit:
				readAnswer(node, answered)
			}
			return true
		})
	}
	for name, all := range answered {
		for i, kind := range all {
			if all[i] = kinds[kind]; all[i] == "" {
				return nil, fmt.Errorf("%s is answered with %s, of which the status is not known", name, kind)
			}
		}
		slices.Sort(all)
		answered[name] = slices.Compact(all)
	}
	return answered, nil
}

// readKind takes a kind of problem: its name, title and status.
func readKind(spec *ast.ValueSpec, kinds map[string]string) {
	for i, value := range spec.Values {
		pointer, ok := value.(*ast.UnaryExpr)
		if !ok {
			continue
		}
		kind, ok := pointer.X.(*ast.CompositeLit)
		if !ok || len(kind.Elts) != 3 {
			continue
		}
		text, isText := kind.Elts[0].(*ast.BasicLit)
		status, isName := kind.Elts[2].(*ast.SelectorExpr)
		if !isText || !isName {
			continue
		}
		if name, err := strconv.Unquote(text.Value); err == nil {
			kinds[spec.Names[i].Name] = fmt.Sprintf("%d [%s](http.md#%s)", statusOf(status.Sel.Name), name, name)
		}
	}
}

// statusOf returns the status of a constant of package net/http.
func statusOf(constant string) int {
	for code := 100; code < 600; code++ {
		if text := strings.ReplaceAll(http.StatusText(code), " ", ""); text != "" && "Status"+text == constant {
			return code
		}
	}
	return 0
}

// readAnswer takes which kind of problem an error is.
func readAnswer(lit *ast.CompositeLit, answered map[string][]string) {
	var name, kind string
	for _, element := range lit.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return
		}
		key, _ := pair.Key.(*ast.Ident)
		switch value := pair.Value.(type) {
		case *ast.SelectorExpr:
			if key != nil && key.Name == "err" {
				name = selector(value)
			}
		case *ast.Ident:
			if key != nil && key.Name == "kind" {
				kind = value.Name
			}
		}
	}
	if name != "" && kind != "" {
		answered[name] = append(answered[name], kind)
	}
}
