package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// ErrNoSection tells that a document has no place for a section.
var ErrNoSection = errors.New("bench: the document has no such section")

// Section returns text with the part between the markers of the named section
// replaced by body:
//
//	<!-- begin NAME -->
//	…
//	<!-- end NAME -->
func Section(text []byte, name string, body []byte) ([]byte, error) {
	begin, end := fmt.Appendf(nil, "<!-- begin %s -->\n", name), fmt.Appendf(nil, "<!-- end %s -->", name)
	before, rest, ok := bytes.Cut(text, begin)
	_, after, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		return nil, fmt.Errorf("%w: %q", ErrNoSection, name)
	}
	return bytes.Join([][]byte{before, begin, bytes.TrimRight(body, "\n"), []byte("\n"), end, after}, nil), nil
}

// WriteSection replaces the named section of the file.
func WriteSection(file, name string, body []byte) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if text, err = Section(text, name, body); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, text, 0o644)
}
