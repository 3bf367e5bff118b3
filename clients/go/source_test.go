package hookyard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
)

const (
	longestFile     = 400
	longestFunction = 60
)

// Everything that is exported says what it is, and nothing is long.
func TestTheSource(t *testing.T) {
	files := token.NewFileSet()
	isOurs := func(file fs.FileInfo) bool { return !strings.HasSuffix(file.Name(), "_test.go") }
	packages, err := parser.ParseDir(files, ".", isOurs, parser.ParseComments)
	must(t, err)
	for name, file := range packages["hookyard"].Files {
		if lines := files.Position(file.End()).Line; lines > longestFile {
			t.Errorf("%s has %d lines", name, lines)
		}
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				if lines := files.Position(declaration.End()).Line - files.Position(declaration.Pos()).Line; lines > longestFunction {
					t.Errorf("%s: %s has %d lines", name, declaration.Name, lines)
				}
				if declaration.Name.IsExported() && declaration.Doc == nil {
					t.Errorf("%s: %s has no comment", name, declaration.Name)
				}
			case *ast.GenDecl:
				for _, spec := range declaration.Specs {
					judgeSpec(t, name, spec, declaration.Doc)
				}
			}
		}
	}
}

func judgeSpec(t *testing.T, file string, spec ast.Spec, above *ast.CommentGroup) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() && above == nil && spec.Doc == nil {
			t.Errorf("%s: %s has no comment", file, spec.Name)
		}
		fields, ok := spec.Type.(*ast.StructType)
		for i := 0; ok && i < len(fields.Fields.List); i++ {
			field := fields.Fields.List[i]
			if len(field.Names) > 0 && field.Names[0].IsExported() && field.Doc == nil {
				t.Errorf("%s: %s.%s has no comment", file, spec.Name, field.Names[0])
			}
		}
	case *ast.ValueSpec:
		if spec.Names[0].IsExported() && above == nil && spec.Doc == nil {
			t.Errorf("%s: %s has no comment", file, spec.Names[0])
		}
	}
}
