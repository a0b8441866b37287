// Package specnotes keeps SPEC_NOTES.md and the pages of docs/spec true: its tests
// fail when a table there names a file or a test that does not exist, when a sentence
// of an RFC is missing, and when the two disagree. It exports nothing.
package specnotes
