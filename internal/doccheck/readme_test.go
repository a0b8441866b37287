package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const workflow = ".github/workflows/test.yml"

// TestWorkflow checks that the hosted workflow runs the test command of README.md on
// three systems, with actions pinned to a commit and rights to read only.
func TestWorkflow(t *testing.T) {
	text := read(t, workflow)
	command := regexp.MustCompile(`(?m)^    (go test .*)$`).FindStringSubmatch(read(t, "README.md"))
	if command == nil {
		t.Fatal("README.md names no command that runs the tests")
	}
	for _, want := range []string{"- run: " + command[1] + "\n", "permissions:\n  contents: read\n", "ubuntu-", "macos-", "windows-"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", workflow, want)
		}
	}
	pinned := regexp.MustCompile(`uses: \S+@[0-9a-f]{40} # v\d`)
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, "uses:") && !pinned.MatchString(line) {
			t.Errorf("%s: action without a commit: %s", workflow, line)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestLinksResolve checks that links between documents lead to files.
func TestLinksResolve(t *testing.T) {
	pages := []string{"README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "SPEC_NOTES.md"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md", "docs/spec/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			name, _ := filepath.Rel(root, f)
			pages = append(pages, filepath.ToSlash(name))
		}
	}
	n := 0
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			n++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if n < 50 {
		t.Errorf("%d links, want those of all documents", n)
	}
}
