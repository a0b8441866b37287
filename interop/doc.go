// Package interop holds tests that need more than Go: other programs, real
// processes, root, or network namespaces. It has no code of its own.
//
// Each test says what it needs, and skips with that reason where it is not
// there. `.ci/run` installs everything and runs them all.
package interop
