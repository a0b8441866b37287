package standard

import (
	"slices"
	"strings"
	"testing"
)

func TestProceduresAreWhole(t *testing.T) {
	all := Procedures()
	functions, large := 0, 0
	seen := make(map[string]bool)
	for i, p := range all {
		if seen[p.Name] {
			t.Errorf("%s is there twice", p.Name)
		}
		seen[p.Name] = true
		if i > 0 && strings.ToLower(all[i-1].Name) > strings.ToLower(p.Name) {
			t.Errorf("%s comes after %s", p.Name, all[i-1].Name)
		}
		if _, ok := KindOf(p.Result); !ok {
			t.Errorf("%s: result of unknown kind %s", p.Name, p.Result)
		}
		if p.InC() {
			functions++
			if p.HasLarge() {
				large++
			}
		}
	}
	if len(all) != 567 {
		t.Errorf("%d procedures, want 567", len(all))
	}
	// What a C library of MPI-5.0 exports, besides the same under PMPI_.
	if functions != 531 || large != 159 {
		t.Errorf("%d functions and %d forms for MPI_Count, want 531 and 159", functions, large)
	}
}

func procedure(t *testing.T, name string) Procedure {
	t.Helper()
	i := slices.IndexFunc(Procedures(), func(p Procedure) bool { return p.Name == name })
	if i < 0 {
		t.Fatalf("no %s", name)
	}
	return Procedures()[i]
}

func TestParametersInC(t *testing.T) {
	send := procedure(t, "MPI_Send")
	var names []string
	for _, p := range send.CParams(false) {
		names = append(names, p.Name)
	}
	if got, want := strings.Join(names, " "), "buf count datatype dest tag comm"; got != want {
		t.Errorf("MPI_Send has %q, want %q", got, want)
	}
	if !send.HasLarge() || send.WantsLarge() {
		t.Errorf("MPI_Send: HasLarge %v, WantsLarge %v; want a form for MPI_Count, with nothing to store", send.HasLarge(), send.WantsLarge())
	}
	for name, want := range map[string]bool{
		"MPI_Get_count": true, "MPI_Allgatherv": true, "MPI_Type_get_contents": false, "MPI_Pack": true, "MPI_Type_get_envelope": true,
		"MPI_Win_create": false, "MPI_Wait": false, "MPI_Type_get_extent": false,
		"MPI_Op_create": true, "MPI_Type_vector": true,
	} {
		if got := procedure(t, name).WantsLarge(); got != want {
			t.Errorf("%s: WantsLarge %v, want %v", name, got, want)
		}
	}
	contents := procedure(t, "MPI_Type_get_contents")
	if small, large := len(contents.CParams(false)), len(contents.CParams(true)); small != 7 || large != 9 {
		t.Errorf("MPI_Type_get_contents has %d parameters and %d with counts, want 7 and 9", small, large)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, table := range map[string]string{
		"short":     "MPI_X\tERROR_CODE",
		"name":      "X\tERROR_CODE\t",
		"parameter": "MPI_X\tERROR_CODE\t\tcomm",
		"direction": "MPI_X\tERROR_CODE\t\tcomm:COMMUNICATOR:up",
		"kind":      "MPI_X\tERROR_CODE\t\tcomm:WHAT:in",
		"attribute": "MPI_X\tERROR_CODE\t\tcomm:COMMUNICATOR:in:often",
	} {
		if p, err := parseProcedures(table); err == nil {
			t.Errorf("%s: %q parsed as %+v", name, table, p)
		}
	}
	if c, err := parseConstants("MPI_X\t1\tint"); err == nil {
		t.Errorf("a constant of three columns parsed as %+v", c)
	}
}

func TestConstants(t *testing.T) {
	all := Constants()
	if len(all) != 373 {
		t.Errorf("%d constants, want 373", len(all))
	}
	seen := make(map[string]string)
	for _, c := range all {
		if other, ok := seen[GoName(c.Name)]; ok {
			t.Errorf("%s and %s have the same name in Go", c.Name, other)
		}
		seen[GoName(c.Name)] = c.Name
		if _, ok := c.Int(); !ok && !strings.HasSuffix(c.Name, "_KIND") && c.Value != "" {
			t.Errorf("%s has the value %q", c.Name, c.Value)
		}
		// A handle fits 10 bits (MPI-5.0, 20.3), and must not be a null pointer.
		if v, _ := c.Int(); c.Handle() && (v <= 0 || v >= 1<<10) {
			t.Errorf("%s is %d", c.Name, v)
		}
	}
}

func TestGoName(t *testing.T) {
	for c, want := range map[string]string{
		"MPI_Type_create_f90_real": "TypeCreateF90Real", "MPI_T_cvar_get_info": "TCvarGetInfo", "MPI_ERR_COMM": "ErrComm",
		"MPI_C_FLOAT_COMPLEX": "CFloatComplex", "MPI_2INT": "X2int", "MPI_T_ERR_MEMORY": "TErrMemory", "MPI_INT8_T": "Int8T",
	} {
		if got := GoName(c); got != want {
			t.Errorf("GoName(%s) = %s, want %s", c, got, want)
		}
	}
}
