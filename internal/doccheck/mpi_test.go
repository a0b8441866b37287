package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weftstack/weft/internal/testenv"
)

// citation matches what connects a Go name with the standard: a function or
// constant of it, or a section.
var citation = regexp.MustCompile(`MPIX?_[A-Z]|MPI-\d\.\d,\s(Section|Chapter)`)

// versions are those of the standard that comments may cite: the one that package
// mpi follows, and the next one for what is new there.
var versions = []string{"MPI-4.1", "MPI-5.0"}

// counterparts lists exported names of package mpi that nothing in the standard
// corresponds to, each group with its reason. A name that ends with a star stands
// for all that begin like it; .Name is a method of any type.
var counterparts = []struct{ reason, names string }{
	{"interfaces of Go's library", ".String .Error .Unwrap"},
	{"limits of this implementation, and their defaults", "Max* Default* MinSilence PatientSilence LocalSilence"},
	{"settings of a job, which the standard leaves to the implementation",
		"Option With* TuningEnv ErrOption TransportHybrid TransportSCTP TransportTCP TransportInproc World.Transport " +
			"RendezvousMessage RendezvousWrite RendezvousRead InfoTimeout"},
	{"the choice of collective algorithms, which the standard leaves to the implementation",
		"Coll Coll* Algorithms Rule Tuning.* ParseTuning ErrTuning"},
	{"where ranks are, which the standard knows as a hardware resource only", "World.Site Comm.SiteOf ResourceSite InfoSite GatewayOptions"},
	{"rights of other ranks to a window, and how it is reached", "Access Access* Win.RDMA WinOption"},
	{"options of constructors, as Go has them", "TopologyOption MustType"},
	{"ranks and programs as goroutines of one process", "RunLocal Program ErrGoexit PanicError Comm.World"},
	{"failures that the standard does not speak of", "ErrAborted ErrAuth ErrFinalized ErrFreed ErrLauncher ErrLimit ErrMessage ErrProtocol"},
	{"what the package makes of the profiling interface", "NoPeer CallSummary Profile.* ProfileReport JobProfile JobProfile.* MergeProfiles NewTracer Tracer.*"},
}

// counterpart reports whether a name must cite the standard.
func counterpart(name string) bool {
	for _, c := range counterparts {
		for _, n := range strings.Fields(c.names) {
			prefix, star := strings.CutSuffix(n, "*")
			if n == name || star && strings.HasPrefix(name, prefix) || n[0] == '.' && strings.HasSuffix(name, n) {
				return false
			}
		}
	}
	return true
}

// exports calls f for each exported name that a file declares, methods behind
// their type, with its documentation.
func exports(file *ast.File, f func(name, doc string, pos token.Pos)) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				typ := testenv.Receiver(d.Recv.List[0].Type)
				if !ast.IsExported(typ) {
					continue
				}
				name = typ + "." + name
			}
			if d.Name.IsExported() {
				f(name, d.Doc.Text(), d.Pos())
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						f(s.Name.Name, d.Doc.Text()+s.Doc.Text()+s.Comment.Text(), s.Pos())
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() {
							f(n.Name, d.Doc.Text()+s.Doc.Text()+s.Comment.Text(), n.Pos())
						}
					}
				}
			}
		}
	}
}

var version = regexp.MustCompile(`MPI-\d\.\d`)

// TestExportedNamesCiteTheStandard checks that the comment of each exported name of
// package mpi names the function, the constant or the section of the MPI standard
// that it stands for, so that a search for MPI_File_read_all finds File.ReadAll.
func TestExportedNamesCiteTheStandard(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "mpi", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal("no package mpi: ", err)
	}
	cited, fset := 0, token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		exports(file, func(name, doc string, pos token.Pos) {
			switch {
			case citation.MatchString(doc):
				cited++
			case counterpart(name):
				t.Errorf("%s: the comment of %s names no function, constant or section of the MPI standard", fset.Position(pos), name)
			}
		})
		for _, c := range file.Comments {
			for _, v := range version.FindAllString(c.Text(), -1) {
				if !slices.Contains(versions, v) {
					t.Errorf("%s: cites %s, want one of %v", fset.Position(c.Pos()), v, versions)
				}
			}
		}
	}
	if cited < 500 {
		t.Errorf("%d names cite the standard, want most of the package", cited)
	}
}
