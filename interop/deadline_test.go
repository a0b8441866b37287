package interop

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// testTime is how long a test may take together with its subtests. The longest one takes
	// less than a minute on two processors. Waits have shorter limits of their own, but a guest
	// that answers no more makes every row wait for its limit.
	testTime = 10 * time.Minute
	// envTestTime gives tests more, for those that are asked by other variables to repeat what they do.
	envTestTime = "WEFT_INTEROP_TIME"
	// unwindTime is how long a test may take to end after its deadline, when its contexts are
	// done and the programs that it started are killed.
	unwindTime = time.Minute
)

// A deadline bounds a test and its subtests. When it has passed, the test fails with where its
// goroutines wait and what its programs have said, its contexts end, and its programs are killed.
type deadline struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	ends   time.Time

	mu       sync.Mutex
	programs map[*program]struct{} // guarded by mu
}

// A program is what a test has started and the report of its deadline shows.
type program struct {
	name string
	said fmt.Stringer
}

// deadlines are those of the tests that run, by name.
var deadlines sync.Map

// bounded gives a test its deadline. It is the first statement of every test.
func bounded(t *testing.T) {
	t.Helper()
	limit := testTime
	if d, err := time.ParseDuration(os.Getenv(envTestTime)); err == nil && d > limit {
		limit = d
	}
	boundedBy(t, limit, unwindTime, t.Errorf, func(report string) {
		debug.SetTraceback("all")
		panic(report)
	})
}

// boundedBy is bounded with other limits, and other ways to fail: late is called when the test
// has taken longer than limit, and stuck when it has not ended for another time of unwind.
func boundedBy(t *testing.T, limit, unwind time.Duration, late func(format string, args ...any), stuck func(report string)) {
	t.Helper()
	d := &deadline{ends: time.Now().Add(limit), programs: make(map[*program]struct{})}
	d.ctx, d.cancel = context.WithCancelCause(context.Background())
	name, reported := t.Name(), make(chan struct{})
	atEnd := time.AfterFunc(limit, func() {
		defer close(reported)
		late("%s takes longer than %v\n%s", name, limit, d.report())
		d.cancel(fmt.Errorf("%s takes longer than %v", name, limit))
	})
	last := time.AfterFunc(limit+unwind, func() {
		stuck(fmt.Sprintf("%s does not end, %v after its deadline", name, unwind))
	})
	deadlines.Store(name, d)
	t.Cleanup(func() {
		if !atEnd.Stop() {
			<-reported // t takes no report when it is over
		}
		last.Stop()
		deadlines.Delete(name)
		d.cancel(context.Canceled)
	})
}

// report tells what the goroutines of this process wait for, and what the programs have said.
func (d *deadline) report() string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var b strings.Builder
	d.mu.Lock()
	for p := range d.programs {
		fmt.Fprintf(&b, "%s has said:\n%s\n", p.name, p.said)
	}
	d.mu.Unlock()
	fmt.Fprintf(&b, "goroutines:\n%s", stacks)
	return b.String()
}

// deadlineOf returns the deadline of the test that t belongs to.
func deadlineOf(t testing.TB) *deadline {
	t.Helper()
	root, _, _ := strings.Cut(t.Name(), "/")
	d, ok := deadlines.Load(root)
	if !ok {
		t.Fatalf("%s has no deadline: it must begin with bounded(t)", root)
	}
	return d.(*deadline)
}

// within returns the context of the test that t belongs to, which ends with its deadline.
func within(t testing.TB) context.Context {
	t.Helper()
	return deadlineOf(t).ctx
}

// shows has the report of the deadline show what a program says, until t ends.
func shows(t testing.TB, name string, said fmt.Stringer) {
	t.Helper()
	d, p := deadlineOf(t), &program{name, said}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.programs[p] = struct{}{}
	t.Cleanup(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.programs, p)
	})
}

// A test that waits for too long fails with what its programs have said and where it waits, and
// the context that it waits with ends. One that still waits after that ends the process.
func TestDeadline(t *testing.T) {
	var report string
	t.Run("a wait with the context", func(t *testing.T) {
		root, _, _ := strings.Cut(t.Name(), "/")
		late := func(format string, args ...any) { report = fmt.Sprintf(format, args...) }
		boundedBy(t, 10*time.Millisecond, time.Hour, late, func(string) {})
		d, _ := deadlines.Load(t.Name())
		deadlines.Store(root, d)
		defer deadlines.Delete(root)
		console := new(lockedBuffer)
		fmt.Fprint(console, "guest: over")
		shows(t, "the guest", console)
		<-within(t).Done()
		if err := context.Cause(within(t)); !strings.Contains(err.Error(), "takes longer than 10ms") {
			t.Errorf("the context ends with %v", err)
		}
	})
	for _, want := range []string{"takes longer than 10ms", "the guest has said:\nguest: over", "interop.TestDeadline.func"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	t.Run("another wait", func(t *testing.T) {
		stuck := make(chan string)
		boundedBy(t, time.Millisecond, time.Millisecond, func(string, ...any) {}, func(report string) { stuck <- report })
		if got := <-stuck; !strings.Contains(got, "does not end") {
			t.Errorf("reported as %q", got)
		}
	})
}

// Every test has a deadline, and so can be named by its report.
func TestEveryTestHasADeadline(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	exempt := map[string]bool{"TestMain": true, "TestDeadline": true, t.Name(): true}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || exempt[fn.Name.Name] {
				continue
			}
			if !beginsWithBounded(fn) {
				t.Errorf("%s: %s does not begin with bounded(t)", file, fn.Name.Name)
			}
		}
	}
}

func beginsWithBounded(fn *ast.FuncDecl) bool {
	if len(fn.Body.List) == 0 {
		return false
	}
	stmt, ok := fn.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := stmt.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "bounded"
}
