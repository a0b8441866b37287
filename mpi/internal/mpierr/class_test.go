package mpierr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/abi"
	"github.com/weftstack/weft/mpi/internal/standard"
)

// TestClassOf compares the class of errors of all kinds with what it should be.
func TestClassOf(t *testing.T) {
	full := AddClass("disk full")
	quota, odd := NewCode(full, "no room for the checkpoint"), NewCode(ClassCount, "odd")
	for _, tt := range []struct {
		err  error
		want Class
	}{
		{nil, ClassSuccess},
		{fmt.Errorf("sending: %w", ErrRank), ClassRank},
		{fmt.Errorf("wrapped: %w", &quota), full},
		{&odd, ClassCount},
		{errors.New("else"), ClassUnknown},
		{context.DeadlineExceeded, ClassPending},
		{&fs.PathError{Op: "open", Err: fs.ErrNotExist}, ClassNoSuchFile},
		{&fs.PathError{Op: "open", Err: errors.New("strange")}, ClassIO},
		{fmt.Errorf("%w: %w", ErrProcFailedPending, ErrProcFailed), ClassProcFailedPending},
	} {
		if got := ClassOf(tt.err); got != tt.want {
			t.Errorf("class of %v = %v, want %v", tt.err, got, tt.want)
		}
		if back := MakePortable(tt.err).Err(); ClassOf(back) != tt.want {
			t.Errorf("class of %v in another process = %v, want %v", tt.err, ClassOf(back), tt.want)
		}
	}
	for _, x := range sentinels {
		if got := ClassOf(fmt.Errorf("x: %w", x.err)); got != x.class {
			t.Errorf("class of %v = %v, want %v", x.err, got, x.class)
		}
	}
}

// TestEveryErrorHasAClass looks for the errors of errors.go in the table of class.go.
func TestEveryErrorHasAClass(t *testing.T) {
	errs, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("class.go")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\t(Err[A-Z]\w*) *= errors\.New`).FindAllSubmatch(errs, -1)
	if len(found) < 40 {
		t.Errorf("%d errors found, want 40", len(found))
	}
	for _, m := range found {
		if !bytes.Contains(table, fmt.Appendf(nil, "{%s, Class", m[1])) {
			t.Errorf("%s has no class", m[1])
		}
	}
}

// TestPredefinedClasses checks that each has a name, and that those that are added, and
// removed, do not mix with them.
func TestPredefinedClasses(t *testing.T) {
	for _, c := range standard.Constants() {
		n, ok := c.Int()
		if !ok || !strings.HasPrefix(c.Name, "MPI_ERR_") || n >= abi.ErrLastcode || c.Table != "ERROR_CLASSES" {
			continue
		}
		if got := Class(n).Text(); !strings.HasPrefix(got, c.Name+": ") {
			t.Errorf("class %d has the text %q, want that of %s", n, got, c.Name)
		}
	}
	names := make(map[string]Class)
	for c, p := range predefined {
		if before, ok := names[p.name]; ok || p.name == "" {
			t.Errorf("classes %d and %d are both called %q", before, c, p.name)
		}
		names[p.name] = c
	}
	full := AddClass("disk full")
	if full.String() != "disk full" || Class(ClassTag).String() != "tag" || Class(-1).String() != "error class -1" {
		t.Errorf("names %v, %v, %v", full, Class(ClassTag), Class(-1))
	}
	if !RemoveClass(full) || RemoveClass(full) || RemoveClass(ClassTag) {
		t.Error("removing classes")
	}
	if next := AddClass("again"); next == full || full.String() == "disk full" {
		t.Errorf("class %d after %d", next, full)
	}
}
