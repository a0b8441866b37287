// Package interop holds tests that need more than Go: other programs, real
// processes, root, or network namespaces. It has no code of its own.
//
// Each test says what it needs, and skips with that reason where it is not
// there, or fails with WEFT_INTEROP=require. Tests that boot a guest or take long skip if that
// variable is not set and -run does not choose tests. `.ci/run` installs
// everything, as root, and requires it.
package interop
