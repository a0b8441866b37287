// Package doccheck keeps what a newcomer reads true: its tests check the documents
// of docs against the code. It exports nothing.
package doccheck
