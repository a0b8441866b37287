package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const module = "github.com/weftstack/weft"

// Source returns a directory with the source of weft: of the module of the current
// directory if that is weft or uses it, else where this program was built, else,
// for a program of a released version, what the Go tool has or downloads.
func Source(ctx context.Context, version string) (string, error) {
	var tried []error
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if dir := strings.TrimSpace(string(out)); err == nil && dir != "" {
		return dir, nil
	}
	tried = append(tried, errors.New("the current directory is of no module that uses "+module))

	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) { // not with -trimpath
		dir := filepath.Join(filepath.Dir(file), "..", "..", "..")
		err := isSource(dir)
		if err == nil {
			return dir, nil
		}
		tried = append(tried, err)
	}

	if strings.HasPrefix(version, "v") {
		var m struct{ Dir, Error string }
		cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
		cmd.Dir = os.TempDir()
		out, _ := cmd.Output() // an error is in the output, too
		if err := json.Unmarshal(out, &m); err == nil && m.Dir != "" {
			return m.Dir, nil
		}
		tried = append(tried, fmt.Errorf("go mod download %s@%s: %s", module, version, m.Error))
	}
	return "", fmt.Errorf("no source of weft: name its directory with -source: %w", errors.Join(tried...))
}

// isSource says why dir is not weft's source.
func isSource(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	if line, _, _ := strings.Cut(string(text), "\n"); strings.TrimSpace(line) != "module "+module {
		return fmt.Errorf("%s is not the module %s: %s", dir, module, strings.TrimSpace(line))
	}
	return nil
}
