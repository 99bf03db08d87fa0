package main

import (
	"go/ast"
	"go/token"
)

// edit replaces a piece of a file.
type edit struct {
	from, to int
	now      string
}

// swapped are the operators that are changed, and into what.
var swapped = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==", token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.ADD: "-", token.SUB: "+", token.MUL: "/", token.LAND: "||", token.LOR: "&&",
}

// edits returns what can be changed in a function: operators, conditions, increments, and
// statements that can be left out.
func edits(f *ast.FuncDecl, at func(token.Pos) int, source []byte) []edit {
	var all []edit
	replace := func(from, to token.Pos, now string) { all = append(all, edit{at(from), at(to), now}) }
	text := func(n ast.Node) string { return string(source[at(n.Pos()):at(n.End())]) }
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if now, ok := swapped[n.Op]; ok {
				replace(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), now)
			}
		case *ast.IfStmt:
			replace(n.Cond.Pos(), n.Cond.End(), "!("+text(n.Cond)+")")
		case *ast.IncDecStmt:
			replace(n.Pos(), n.End(), text(n.X)+map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok])
		case *ast.ExprStmt:
			replace(n.Pos(), n.End(), "")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				replace(n.Pos(), n.End(), "")
			}
		case *ast.BranchStmt:
			if n.Label == nil {
				replace(n.Pos(), n.End(), "")
			}
		}
		return true
	})
	return all
}
