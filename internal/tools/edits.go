package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// source is a file whose functions are changed.
type source struct {
	path, pkg, text string
	functions       []*function
}

// function is one that has a body, and what can be changed in it. Between its braces stand the
// file's bytes [from, to).
type function struct {
	source     *source
	start, end position
	from, to   int
	results    string
	changes    []*mutation
}

// mutation is one small change of a function: where it is, and the body with it. It
// has a number in the program that it is built into, where it takes the lines from first to last;
// 0 if it is not built.
type mutation struct {
	in          *function
	name        string
	at          position
	body        string
	number      int
	first, last int
}

// edit replaces a piece of a file.
type edit struct {
	from, to token.Pos
	now      string
}

// readSource finds the functions of a file and the changes that can be made in them.
func readSource(dir, path string) (*source, error) {
	text, err := os.ReadFile(filepath.Join(dir, path))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{path: path, text: string(text), pkg: file.Name.Name}
	at := func(p token.Pos) int { return set.Position(p).Offset }
	where := func(p token.Pos) position { at := set.Position(p); return position{at.Line, at.Column} }
	seen := make(map[string]int)
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		changed := &function{
			source: s, start: where(f.Body.Lbrace), end: where(f.Body.End()), from: at(f.Body.Lbrace) + 1, to: at(f.Body.Rbrace),
		}
		if r := f.Type.Results; r != nil {
			changed.results = s.text[at(r.Pos()):at(r.End())]
		}
		for _, e := range edits(f, func(n ast.Node) string { return s.text[at(n.Pos()):at(n.End())] }) {
			from, to := at(e.from), at(e.to)
			// Without a line, the name outlives changes elsewhere in the file.
			name := fmt.Sprintf("%s %s: %s -> %s", path, f.Name.Name, squeeze(s.text[from:to]), squeeze(e.now))
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s (%d)", name, seen[name])
			}
			changed.changes = append(changed.changes, &mutation{
				in: changed, name: name, at: where(e.from),
				body: s.text[changed.from:from] + e.now + s.text[to:changed.to],
			})
		}
		s.functions = append(s.functions, changed)
	}
	return s, nil
}

// squeeze makes code one short line.
func squeeze(code string) string {
	code = strings.Join(strings.Fields(code), " ")
	if len(code) > 60 {
		code = code[:60]
	}
	return code
}

// swapped are the operators that are changed, and into what.
var swapped = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==", token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.LAND: "||", token.LOR: "&&",
	token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+=",
}

// edits returns what can be changed in a function: operators, conditions, increments, and
// statements that can be left out.
func edits(f *ast.FuncDecl, text func(ast.Node) string) []edit {
	var all []edit
	replace := func(n ast.Node, now string) { all = append(all, edit{n.Pos(), n.End(), now}) }
	operator := func(at token.Pos, op token.Token, now string) {
		all = append(all, edit{at, at + token.Pos(len(op.String())), now})
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if now, ok := swapped[n.Op]; ok {
				operator(n.OpPos, n.Op, now)
			}
		case *ast.IfStmt:
			// Whether a comparison for equality is turned or its operator is the same.
			if b, ok := n.Cond.(*ast.BinaryExpr); !ok || b.Op != token.EQL && b.Op != token.NEQ {
				replace(n.Cond, "!("+text(n.Cond)+")")
			}
		case *ast.IncDecStmt:
			replace(n, text(n.X)+map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok])
		case *ast.AssignStmt:
			if now, ok := swapped[n.Tok]; ok {
				operator(n.TokPos, n.Tok, now)
			}
		}
		if canBeLeftOut(n) {
			replace(n, "")
		}
		return true
	})
	return all
}

func canBeLeftOut(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ExprStmt:
		return true
	case *ast.AssignStmt:
		return n.Tok != token.DEFINE
	case *ast.BranchStmt:
		return n.Label == nil
	case *ast.ReturnStmt:
		return len(n.Results) == 0
	}
	return false
}
