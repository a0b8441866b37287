package launch

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestLibraryPath(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the C library is built on Linux")
	}
	dir := t.TempDir()
	t.Setenv(envLibrary, dir)
	t.Setenv("LD_LIBRARY_PATH", "")
	if got := libraryPath(nil); got != nil {
		t.Errorf("a directory without the library: %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "libmpi_abi.so.1"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ env, want []string }{
		"alone":        {nil, []string{"LD_LIBRARY_PATH=" + dir}},
		"before -x":    {[]string{"LD_LIBRARY_PATH=/a", "LD_LIBRARY_PATH=/b:/c"}, []string{"LD_LIBRARY_PATH=" + dir + ":/b:/c"}},
		"already":      {[]string{"LD_LIBRARY_PATH=/a:" + dir}, nil},
		"elsewhere":    {[]string{envLibrary + "=/nowhere"}, nil},
		"another name": {[]string{"XLD_LIBRARY_PATH=/a"}, []string{"LD_LIBRARY_PATH=" + dir}},
	} {
		if got := libraryPath(tt.env); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	t.Setenv("LD_LIBRARY_PATH", "/mine")
	if got, want := libraryPath(nil), []string{"LD_LIBRARY_PATH=" + dir + ":/mine"}; !slices.Equal(got, want) {
		t.Errorf("with one in the environment: %q, want %q", got, want)
	}
	t.Setenv(envLibrary, "")
	if got := libraryPath(nil); got != nil {
		t.Errorf("a test binary has no library beside it: %q", got)
	}
}
