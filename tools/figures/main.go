// Command figures counts the Go code of checkouts of this repository, and prints
// a table in Markdown with a column for each: docs/ARCHITECTURE.md keeps two of them.
// With -ceilings it fails when a figure of the last checkout is above its ceiling there.
//
//	go run tools/figures/main.go [-ceilings file] [checkout ...]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	ceilings := flag.String("ceilings", "", "a file of figures that the last checkout may not exceed")
	flag.Parse()
	checkouts := flag.Args()
	if len(checkouts) == 0 {
		checkouts = []string{"."}
	}
	if err := report(checkouts, *ceilings); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func report(checkouts []string, ceilings string) error {
	rows := make([][]string, len(labels))
	var last figures
	for _, checkout := range checkouts {
		commit, binary, err := build(checkout)
		if err != nil {
			return err
		}
		if last, err = measure(checkout); err != nil {
			return err
		}
		for i, cell := range last.column(commit, binary) {
			rows[i] = append(rows[i], cell)
		}
	}
	for i, cells := range rows {
		fmt.Printf("| %s | %s |\n", labels[i], strings.Join(cells, " | "))
		if i == 0 {
			fmt.Println("|---" + strings.Repeat("|---", len(cells)) + "|")
		}
	}
	if ceilings == "" {
		return nil
	}
	return last.check(ceilings)
}

// check returns an error for each figure that is above its ceiling. A line of the file is a
// figure's name, its ceiling, and after a # anything.
func (f *figures) check(ceilings string) error {
	text, err := os.ReadFile(ceilings)
	if err != nil {
		return err
	}
	_, largest := f.largestPackage()
	reached := map[string]int{
		"product-lines":    f.product,
		"core-lines":       f.core,
		"largest-package":  largest,
		"longest-function": slices.Max(f.functions),
		"internal-folders": len(f.folders),
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		is, known := reached[fields[0]]
		if !known || len(fields) != 2 {
			return fmt.Errorf("%s: %q is not the name of a figure and its ceiling", ceilings, strings.TrimSpace(line))
		}
		delete(reached, fields[0])
		ceiling, convErr := strconv.Atoi(fields[1])
		switch {
		case convErr != nil:
			return fmt.Errorf("%s: %w", ceilings, convErr)
		case is > ceiling:
			err = errors.Join(err, fmt.Errorf("%s is %d, above its ceiling of %d; make room, or raise the ceiling in %s in a commit of its own that says why",
				fields[0], is, ceiling, ceilings))
		}
	}
	for name := range reached {
		err = errors.Join(err, fmt.Errorf("%s: %s has no ceiling", ceilings, name))
	}
	return err
}

// labels name the cells of a column, in order.
var labels = []string{
	"figure",
	"product: lines",
	"core: lines",
	"product: packages, files",
	"largest package: lines",
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

// equipment matches the folders that only tests and measurements use, and examples: contract
// suites (`locktest`), test/, and what stood in internal/ before test/ was there.
var equipment = regexp.MustCompile(`^(test|tools|interop|examples)(/|$)|test(/|$)|^internal/(bench|daemon|netfault|nightly|torture)(/|$)`)

// extension matches the folders of kinds of sources and sinks, of lock providers, and of
// public packages: the core is the product without them.
var extension = regexp.MustCompile(`^internal/source/(mysql|oracle|postgres|sqlite)(/|$)|^internal/sink/[^/]+|^internal/lock/(kubelease|[a-z]+lock)(/|$)|^(locks|guard)(/|$)`)

// figures of one checkout.
type figures struct {
	product, core, productTests, equipment, equipmentTests int // lines

	packages  map[string]int             // lines of the product, by folder
	folders   map[string]bool            // those directly in internal/
	files     []int                      // lines of each file of the product
	functions []int                      // lines of each function of the product
	methods   map[string]map[string]bool // by package and type, by name: platforms repeat a method
}

// build builds the program, and returns the commit and the size of the binary.
func build(checkout string) (commit string, size int64, err error) {
	commit, err = run(checkout, "git", "describe", "--always", "--dirty", "--exclude", "*")
	if err != nil {
		return "", 0, err
	}
	if _, err := run(checkout, "make", "build"); err != nil {
		return "", 0, err
	}
	binary, err := os.Stat(filepath.Join(checkout, "bin", "observerd"))
	if err != nil {
		return "", 0, err
	}
	return strings.TrimSpace(commit), binary.Size(), nil
}

// measure counts the files of a checkout.
func measure(checkout string) (figures, error) {
	f := figures{packages: map[string]int{}, folders: map[string]bool{}, methods: map[string]map[string]bool{}}
	files, err := run(checkout, "git", "ls-files", "*.go")
	if err != nil {
		return f, err
	}
	for name := range strings.Lines(files) {
		if err := f.count(checkout, strings.TrimSpace(name)); err != nil {
			return f, err
		}
	}
	return f, nil
}

// column returns the cells of the checkout's column.
func (f *figures) column(commit string, binary int64) []string {
	name, lines := f.largestPackage()
	return []string{
		"`" + commit + "`",
		thousands(f.product),
		thousands(f.core),
		fmt.Sprintf("%d, %d", len(f.packages), len(f.files)),
		fmt.Sprintf("`%s`, %s", name, thousands(lines)),
		thousands(f.productTests),
		thousands(f.equipment),
		thousands(f.equipmentTests),
		thousands(f.equipment + f.equipmentTests),
		f.largestType(),
		distribution(f.functions),
		distribution(f.files),
		fmt.Sprint(len(f.folders)),
		fmt.Sprintf("%.1f MB", float64(binary)/1e6),
	}
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
		if !extension.MatchString(filepath.ToSlash(dir)) {
			f.core += lines
		}
		f.packages[dir] += lines
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

func (f *figures) largestPackage() (name string, lines int) {
	for dir, n := range f.packages {
		if n > lines || n == lines && dir < name {
			name, lines = dir, n
		}
	}
	return name, lines
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
