package version

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/weftstack/weft/cmd/weft/internal/clitest"
	"github.com/weftstack/weft/internal/cli"
)

func TestMain(m *testing.M) {
	clitest.Main(m, &cli.Program{Name: "weft", Commands: []cli.Command{{Name: "version", Run: Main}}}, nil)
}

func TestFromBuild(t *testing.T) {
	platform := runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for _, tt := range []struct {
		name  string
		build debug.BuildInfo
		ok    bool
		want  string
	}{
		{"no build information", debug.BuildInfo{}, false, "weft (devel) " + platform + " revision unknown\n"},
		{"no version", debug.BuildInfo{}, true, "weft (devel) " + platform + " revision unknown\n"},
		{"release", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"},
		}}, true, "weft v1.2.3 " + platform + " revision abc\n"},
		{"modified", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3+dirty"}, Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
		}}, true, "weft v1.2.3+dirty " + platform + " revision abc (modified)\n"},
	} {
		var b strings.Builder
		info := fromBuild(&tt.build, tt.ok)
		if err := info.print(&b, false); err != nil || b.String() != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, b.String(), err, tt.want)
		}
	}
}

func TestVersionCommand(t *testing.T) {
	out, errs, status := clitest.Weft(t, "", "version", "--json")
	var info Info
	if err := json.Unmarshal([]byte(out), &info); err != nil || status != 0 || errs != "" {
		t.Fatalf("status %d, %v, %q", status, err, errs)
	}
	if info.Version == "" || info.Go != runtime.Version() || info.OS != runtime.GOOS || info.Arch != runtime.GOARCH {
		t.Errorf("version %+v", info)
	}
	for _, args := range [][]string{{"now"}, {"-x"}} {
		clitest.WantMisused(t, "weft version", append([]string{"version"}, args...)...)
	}
}
