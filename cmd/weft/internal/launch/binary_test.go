package launch

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
)

func TestForeignLibrary(t *testing.T) {
	for needed, want := range map[string]string{
		"libm.so.6 libmpi.so.40 libc.so.6":      "libmpi.so.40",
		"libmpi_mpifh.so.40 libc.so.6":          "libmpi_mpifh.so.40",
		"libmpi_abi.so.1 libmpi.so.40":          "",
		"libmpich.so.12":                        "", // finds its launcher by PMI-1
		"libmpi.so.12":                          "", // MPICH, too
		"libmpi_abi_fortran.so.1 libmpi_abi.so": "",
		"libc.so.6":                             "",
	} {
		if got := foreignLibrary(strings.Fields(needed)); got != want {
			t.Errorf("%s: %q, want %q", needed, got, want)
		}
	}
}

// A program of another machine, and a file that is none, are called what they are.
func TestRunOfWrongFormat(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the programs of this system are not ELF files")
	}
	header := make([]byte, 64)
	copy(header, "\x7fELF\x02\x01\x01")
	binary.LittleEndian.PutUint16(header[16:], 2) // executable
	binary.LittleEndian.PutUint16(header[18:], 2) // SPARC
	binary.LittleEndian.PutUint32(header[20:], 1)
	binary.LittleEndian.PutUint16(header[52:], 64)
	binary.LittleEndian.PutUint16(header[54:], 56)
	binary.LittleEndian.PutUint16(header[58:], 64)
	for text, want := range map[string]string{string(header): "it is a program for EM_SPARC, and this machine is EM_", "junk\n": "neither a program nor a script"} {
		name := filepath.Join(t.TempDir(), "prog")
		if err := os.WriteFile(name, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
		_, errs, status := clitest.Weft(t, "", "run", "-n", "2", name)
		if status != cli.ExitFail || !strings.Contains(errs, want) || !strings.Contains(errs, name) {
			t.Errorf("status %d, %q, want %q", status, errs, want)
		}
	}
}
