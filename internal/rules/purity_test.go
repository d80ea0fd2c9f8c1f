package rules

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// heart are the packages that must be pure.
var heart = []string{"pkg/oracle", "pkg/learner", "internal/ledger", "internal/loop"}

// allowedImports of the heart. What is not here brings a clock, I/O, goroutines, a
// random source, or an order that changes from run to run (maps).
var allowedImports = []string{
	"bytes", "cmp", "crypto/sha256", "encoding", "encoding/binary", "encoding/hex", "errors", "fmt", "math",
	"math/bits",
	"slices", "strconv", "strings", "unicode/utf8", "unsafe",
	"hindsight/internal/ledger", "hindsight/pkg/codec", "hindsight/pkg/learner", "hindsight/pkg/oracle",
}

// allowedMath are the functions of package math that give the same bits on every
// machine: they are exact, or move bits.
var allowedMath = []string{
	"Abs", "Ceil", "Copysign", "Float64bits", "Float64frombits", "Floor", "Inf", "IsInf", "IsNaN", "Max", "Min", "NaN",
	"Signbit", "Sqrt", "Trunc",
}

// allowedRanges are the loops over maps whose order changes nothing, by package and
// function.
var allowedRanges = map[string]string{
	"hindsight/pkg/oracle NewTabularClass":      "numbers the rows, which are only ever found by their key",
	"hindsight/pkg/oracle Head.expect":          "fills a map of the same keys",
	"hindsight/pkg/learner Budget.atHead":       "fills a map of the same keys",
	"hindsight/pkg/learner DAFA.firstPrices":    "sorts the names that it collects",
	"hindsight/internal/loop Joiner.OldestTold": "is a minimum",
}

// allowedVars are package variables that look mutable and are not.
var allowedVars = map[string]string{
	"hindsight/pkg/oracle avx2":        "is what the processor can do; the kernels give the same bits either way",
	"hindsight/pkg/oracle cosineTerms": "are numbers that the kernel reads, and nothing writes",
}

func TestHeartIsPure(t *testing.T) {
	exports := listExports(t)
	seen := map[string]bool{}
	for _, dir := range heart {
		names := sources(t, dir, "amd64")
		checkPure(t, dir, names, exports, seen)
		if other := sources(t, dir, "arm64"); !slices.Equal(other, names) {
			checkPure(t, dir, other, exports, seen)
		}
	}
	for key := range allowedRanges {
		if !seen[key] {
			t.Errorf("no loop over a map is in %s any more: take it off the list", key)
		}
	}
	for key := range allowedVars {
		if !seen[key] {
			t.Errorf("there is no variable %s any more: take it off the list", key)
		}
	}
}

// sources returns the files of a package, without tests, that an architecture builds.
func sources(t *testing.T, dir, arch string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no sources in %s: %v", dir, err)
	}
	builds := build.Default
	builds.GOARCH = arch
	for _, name := range all {
		built, err := builds.MatchFile(filepath.Split(name))
		if err != nil {
			t.Fatal(err)
		}
		if built && !strings.HasSuffix(name, "_test.go") {
			names = append(names, name)
		}
	}
	return names
}

func checkPure(t *testing.T, dir string, names []string, exports map[string]string, seen map[string]bool) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	for _, v := range violations(t, "hindsight/"+dir, fset, files, exports, seen) {
		t.Error(v)
	}
}

// Each of these breaks a rule, and the test must say which.
func TestPurityTestCanFail(t *testing.T) {
	exports := listExports(t)
	for _, bad := range []struct{ src, want string }{
		{`import "os"; func f() { os.Exit(1) }`, `imports "os"`},
		{`import "io"; var _ io.Reader`, `imports "io"`},
		{`import "net"; var _ net.Conn`, `imports "net"`},
		{`import "context"; func f(context.Context) {}`, `imports "context"`},
		{`import "sync"; type T struct{ sync.Mutex }`, `imports "sync"`},
		{`import "sync/atomic"; type T struct{ x atomic.Int64 }`, `imports "sync/atomic"`},
		{`import "time"; func f() int64 { return time.Now().Unix() }`, `imports "time"`},
		{`import t "time"; var x t.Duration`, `imports "time"`},
		{`import "log"; func f() { log.Print() }`, `imports "log"`},
		{`import "log/slog"; func f() { slog.Info("") }`, `imports "log/slog"`},
		{`import "math/rand"; func f() int { return rand.Int() }`, `imports "math/rand"`},
		{`import "math/rand/v2"; func f() int { return rand.Int() }`, `imports "math/rand/v2"`},
		{`import "crypto/rand"; var r = rand.Reader`, `imports "crypto/rand"`},
		{`import "maps"; func f(m map[int]int) { for range maps.Keys(m) { } }`, `imports "maps"`},
		{`func f() { go f() }`, "go statement"},
		{`func f(c chan int) {}`, "channel"},
		{`type T struct{ c <-chan bool }`, "channel"},
		{`func f() { select {} }`, "select"},
		{`import "math"; func f(x float64) float64 { return math.Exp(x) }`, "math.Exp"},
		{`import "math"; func f(x float64) float64 { return math.Log(x) }`, "math.Log"},
		{`import m "math"; func f(x float64) float64 { return m.Pow(x, 2) }`, "math.Pow"},
		{`import . "math"; func f(x float64) float64 { return Sin(x) }`, "math.Sin"},
		{`import "math"; var tanh = math.Tanh`, "math.Tanh"},
		{`import "math"; func f(x float64) float64 { return math.FMA(x, x, x) }`, "math.FMA"},
		{`import "fmt"; func f() { fmt.Println() }`, "fmt.Println"},
		{`func f() { println() }`, "println"},
		{`func init() {}`, "init"},
		{`var count int; func f() { count++ }`, "variable count"},
		{`var cache = map[string]int{}`, "variable cache"},
		{`var p *int`, "variable p"},
		{`var table = []int{1}; func f() { table[0] = 2 }`, "variable table"},
		{`var table = [2]int{1}; func f() *int { return &table[1] }`, "variable table"},
		{`var table = [2]int{1}; func f() []int { return table[:] }`, "variable table"},
		{`var table = []int{1}; func f() { g(table) }; func g([]int) {}`, "variable table"},
		{`func f(m map[int]int, dst []int) []int { for k := range m { dst = append(dst, k) }; return dst }`,
			"range over a map"},
		{`type M map[int]int; func f(m M) (s int) { for _, v := range m { s += v }; return s }`, "range over a map"},
		{`func f[M ~map[int]int](m M) (s int) { for _, v := range m { s += v }; return s }`, "range over a map"},
		{`func f(a, b, c float64) float64 { return a*b + c }`, "product"},
		{`func f(a, b, c float64) float64 { return c - (a * b) }`, "product"},
		{`func f(a, b, c float64) float64 { c += a * b; return c }`, "product"},
		{`func f(a, b, c float64) float64 { return c + -(a * b) }`, "product"},
		{`func f(a, b, c float64) float64 { x := a * b; return x + c }`, "product"},
		{`func f(a, b float64) float64 { a *= 3; return a + b }`, "product"},
		{`func f(a, b float64) float64 { return a + b*0.3 }`, "product"},
		{`func f(a, b, c float32) float32 { return a*b + c }`, "product"},
		{`func f(a, b complex128) complex128 { return a * b }`, "complex"},
	} {
		got := snippet(t, bad.src, exports)
		if len(got) == 0 || !strings.Contains(got[0], bad.want) {
			t.Errorf("%s\n got %q\nwant %q", bad.src, got, bad.want)
		}
	}
	for _, good := range []string{
		`import "errors"; var ErrX = errors.New("x")`,
		`var table = [...]float64{1, 2}; func f(i int) float64 { return table[i] + float64(len(table)) }`,
		`var names = []string{"a"}; func f() (n int) { for _, s := range names { n += len(s) }; return n }`,
		`import "fmt"; var _ fmt.Stringer = T{}; type T struct{}; func (T) String() string { return "" }`,
		`import "math"; func f(x float64) float64 { return math.Sqrt(x) + math.Max(x, math.MaxFloat64) }`,
		`func f(a, b, c float64) float64 { return float64(a*b) + c - float64(a*c) }`,
		`func f(a, b float64) float64 { a *= 2; return a + b*0x1p-53 }`,
		`func f(a, b int) int { return a*b + a }`,
		`func f(a []float64, i, j int) float64 { return a[i*j+1] + 2*3.0 }`,
		`func f(a, b, c float64) float64 { x := float64(a * b); return x + c }`,
	} {
		if got := snippet(t, good, exports); len(got) > 0 {
			t.Errorf("%s\n%q", good, got)
		}
	}
}

func snippet(t *testing.T, src string, exports map[string]string) []string {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "snippet.go", "package snippet; "+src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return violations(t, "snippet", fset, []*ast.File{f}, exports, map[string]bool{})
}
