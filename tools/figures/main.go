// Command figures counts the Go code of checkouts of this repository, and prints
// a table in Markdown with a column for each: docs/ARCHITECTURE.md keeps two of them.
//
//	go run tools/figures/main.go [checkout ...]
package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	checkouts := os.Args[1:]
	if len(checkouts) == 0 {
		checkouts = []string{"."}
	}
	if err := report(checkouts); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func report(checkouts []string) error {
	rows := make([][]string, len(labels))
	for _, checkout := range checkouts {
		column, err := measure(checkout)
		if err != nil {
			return err
		}
		for i, cell := range column {
			rows[i] = append(rows[i], cell)
		}
	}
	for i, cells := range rows {
		fmt.Printf("| %s | %s |\n", labels[i], strings.Join(cells, " | "))
		if i == 0 {
			fmt.Println("|---" + strings.Repeat("|---", len(cells)) + "|")
		}
	}
	return nil
}

// labels name the cells of a column, in order.
var labels = []string{
	"figure",
	"product: lines",
	"product: packages, files",
	"tests of the product: lines",
	"equipment: lines",
	"tests of the equipment: lines",
	"equipment and its tests: lines",
	"type with the most methods",
	"lines of a function: median, p90, longest",
	"lines of a file: median, p90, longest",
	"folders in `internal/`",
	"binary",
}

// equipment matches the folders that only tests and measurements use: contract suites
// (`locktest`), test/, and what stood in internal/ before test/ was there.
var equipment = regexp.MustCompile(`^(test|tools|interop)(/|$)|test(/|$)|^internal/(bench|daemon|netfault|nightly|torture)(/|$)`)

// figures of one checkout.
type figures struct {
	product, productTests, equipment, equipmentTests int // lines

	packages  map[string]bool            // folders of the product
	folders   map[string]bool            // those directly in internal/
	files     []int                      // lines of each file of the product
	functions []int                      // lines of each function of the product
	methods   map[string]map[string]bool // by package and type, by name: platforms repeat a method
}

// measure returns the cells of a checkout's column.
func measure(checkout string) ([]string, error) {
	commit, err := run(checkout, "git", "describe", "--always", "--dirty", "--exclude", "*")
	if err != nil {
		return nil, err
	}
	if _, err := run(checkout, "make", "build"); err != nil {
		return nil, err
	}
	binary, err := os.Stat(filepath.Join(checkout, "bin", "observerd"))
	if err != nil {
		return nil, err
	}
	files, err := run(checkout, "git", "ls-files", "*.go")
	if err != nil {
		return nil, err
	}
	f := figures{packages: map[string]bool{}, folders: map[string]bool{}, methods: map[string]map[string]bool{}}
	for name := range strings.Lines(files) {
		if err := f.count(checkout, strings.TrimSpace(name)); err != nil {
			return nil, err
		}
	}
	return []string{
		"`" + strings.TrimSpace(commit) + "`",
		thousands(f.product),
		fmt.Sprintf("%d, %d", len(f.packages), len(f.files)),
		thousands(f.productTests),
		thousands(f.equipment),
		thousands(f.equipmentTests),
		thousands(f.equipment + f.equipmentTests),
		f.largestType(),
		distribution(f.functions),
		distribution(f.files),
		fmt.Sprint(len(f.folders)),
		fmt.Sprintf("%.1f MB", float64(binary.Size())/1e6),
	}, nil
}

func run(dir, name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Dir = dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s in %s: %w\n%s", command, dir, err, stderr.String())
	}
	return string(out), nil
}

// count adds a file, named by its path from the root of the checkout.
func (f *figures) count(checkout, name string) error {
	text, err := os.ReadFile(filepath.Join(checkout, name))
	if err != nil {
		return err
	}
	if parts := strings.Split(name, "/"); parts[0] == "internal" {
		f.folders[parts[1]] = true
	}
	lines, dir := bytes.Count(text, []byte("\n")), filepath.Dir(name)
	test, ofEquipment := strings.HasSuffix(name, "_test.go"), equipment.MatchString(filepath.ToSlash(dir))
	switch {
	case test && ofEquipment:
		f.equipmentTests += lines
	case ofEquipment:
		f.equipment += lines
	case test:
		f.productTests += lines
	default:
		f.product += lines
		f.packages[dir] = true
		f.files = append(f.files, lines)
		return f.parse(dir, name, text)
	}
	return nil
}

// parse adds the functions and methods of a file of the product.
func (f *figures) parse(dir, name string, text []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		f.functions = append(f.functions, set.Position(function.End()).Line-set.Position(function.Pos()).Line+1)
		if function.Recv != nil {
			receiver := filepath.Base(dir) + "." + typeName(function.Recv.List[0].Type)
			if f.methods[receiver] == nil {
				f.methods[receiver] = map[string]bool{}
			}
			f.methods[receiver][function.Name.Name] = true
		}
	}
	return nil
}

// typeName is the name of a receiver's type, which may be a pointer or generic.
func typeName(receiver ast.Expr) string {
	switch e := receiver.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func (f *figures) largestType() string {
	var largest string
	for name, methods := range f.methods {
		if n := len(methods) - len(f.methods[largest]); n > 0 || n == 0 && name < largest {
			largest = name
		}
	}
	return fmt.Sprintf("`%s`, %d methods", largest, len(f.methods[largest]))
}

func distribution(values []int) string {
	slices.Sort(values)
	at := func(percent int) int { return values[(len(values)-1)*percent/100] }
	return fmt.Sprintf("%d, %d, %d", at(50), at(90), at(100))
}

func thousands(n int) string {
	return fmt.Sprintf("%d,%03d", n/1000, n%1000)
}
