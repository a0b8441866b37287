package fortran

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/mpi/internal/standard"
)

func sources(t *testing.T) map[string]string {
	t.Helper()
	all, err := Sources()
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, s := range all {
		texts[s.Name] = s.Text
	}
	return texts
}

// MPI-5.0, 19.1.4: mpif.h must be valid in both source forms.
func TestIncludeIsOfBothSourceForms(t *testing.T) {
	for i, line := range strings.Split(strings.TrimSuffix(include(), "\n"), "\n") {
		if strings.HasPrefix(line, "!") {
			continue
		}
		if !strings.HasPrefix(line, "      ") || strings.HasPrefix(line, "       ") || len(line) > 72 || strings.Contains(line, "&") {
			t.Errorf("line %d of mpif.h is not in columns 7 to 72: %q", i+1, line)
		}
	}
}

func TestIncludeHasAllConstantsOfFortran(t *testing.T) {
	text := include()
	for _, c := range standard.Constants() {
		if c.Fortran == "" || strings.HasPrefix(c.Name, "MPI_T_") {
			continue
		}
		if !regexp.MustCompile(`(?m)^      (PARAMETER \(` + c.Name + `=|COMMON /MPI_WEFT_\w+/ ` + c.Name + `$|EXTERNAL ` + c.Name + `$)`).MatchString(text) {
			t.Errorf("mpif.h has no %s (%s)", c.Name, c.Fortran)
		}
	}
	for _, want := range []string{"PARAMETER (MPI_COMM_WORLD=257)", "PARAMETER (MPI_STATUS_SIZE=8)",
		"PARAMETER (MPI_ADDRESS_KIND=8)", "PARAMETER (MPI_INTEGER_KIND=4)", "INTEGER(KIND=MPI_OFFSET_KIND) MPI_DISPLACEMENT_CURRENT"} {
		if !strings.Contains(text, want) {
			t.Errorf("mpif.h has no %q", want)
		}
	}
}

var entryName = regexp.MustCompile(`(?m)(?:^|[ ,(])(?:void|double|MPI_Aint) pmpi_(\w+)_\(|\b(?:WEAK|SAME|WEAK_F08)\((\w+)`)

// Every procedure that Fortran has needs its entry point, whether generated or
// written by hand, and one that mpi_f08 calls.
func TestAllProceduresHaveEntryPoints(t *testing.T) {
	have := map[string]bool{}
	for name, text := range sources(t) {
		if !strings.HasSuffix(name, ".c") {
			continue
		}
		// The macros of attributes.c have an object in the names.
		if name == "attributes.c" {
			expanded := text
			for _, object := range []string{"comm", "type", "win"} {
				expanded += strings.NewReplacer("##object##", object, "object##", object).Replace(text)
			}
			text = expanded
		}
		if name == "callbacks.c" {
			text += strings.ReplaceAll(text, "##form", "") + strings.ReplaceAll(text, "##form", "_c")
		}
		for _, m := range entryName.FindAllStringSubmatch(text, -1) {
			have[m[1]] = true
			have[m[2]] = true
			if strings.Contains(m[0], "WEAK_F08") {
				have[m[2]+"_f08"] = true
			}
		}
	}
	for _, p := range procedures() {
		small := form{Procedure: p}
		want := []string{small.symbol()}
		if !p.Has("not_f08_expressible") {
			f08 := form{Procedure: p, choice: hasChoice(p)}
			if f08.choice {
				want = append(want, f08.symbol())
			} else {
				want = append(want, f08.symbol()+"_f08")
			}
			if p.HasLarge() {
				f08.large = true
				want = append(want, f08.symbol())
			}
		}
		for _, w := range want {
			if !have[w] {
				t.Errorf("%s has no entry point mpi_%s_", p.Name, w)
			}
		}
	}
}

// MPI-5.0, 19.1.2: where addresses and counts are of one kind, the large form of these
// cannot share a generic name.
func TestNamesOfLargeForms(t *testing.T) {
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^    interface (MPI_\w+_c)$`).FindAllStringSubmatch(f08Module(), -1) {
		got = append(got, m[1])
	}
	want := []string{"MPI_File_get_type_extent_c", "MPI_Op_create_c", "MPI_Register_datarep_c", "MPI_Type_create_resized_c",
		"MPI_Type_get_extent_c", "MPI_Type_get_true_extent_c"}
	if !slices.Equal(got, want) {
		t.Errorf("procedures with a name of their own for large counts: %v, want %v", got, want)
	}
}

// gfortran takes 132 columns of free source form.
func TestModulesHaveShortLines(t *testing.T) {
	for name, text := range sources(t) {
		if !strings.HasSuffix(name, ".f90") {
			continue
		}
		for i, line := range strings.Split(text, "\n") {
			if len(line) > 132 {
				t.Errorf("%s:%d: %d columns", name, i+1, len(line))
			}
		}
	}
}

// A compiler reads the modules that a file uses, so they are compiled before.
func TestModulesComeBeforeTheirUses(t *testing.T) {
	all, err := Sources()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]bool{}
	for _, s := range all {
		if !strings.HasSuffix(s.Name, ".f90") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^    use (mpi\w*)`).FindAllStringSubmatch(s.Text, -1) {
			if !compiled[m[1]] {
				t.Errorf("%s uses module %s, which comes later", s.Name, m[1])
			}
		}
		compiled[regexp.MustCompile(`(?m)^module (\w+)`).FindStringSubmatch(s.Text)[1]] = true
	}
}
