// Package specnotes keeps SPEC_NOTES.md true: its test fails when a table there
// names a file or a test that does not exist. It exports nothing.
package specnotes
