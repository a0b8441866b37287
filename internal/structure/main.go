// Command structure measures how well the two largest rooms of the module, package
// mpi and the protocol core of package sctp, are divided. A room is a package
// together with the packages below its directory that it is built from.
//
//	go run ./internal/structure         print the table of docs/architecture.md
//	go run ./internal/structure -write  … and put it into that document
//
// The test of this package fails when a number exceeds the one in the document.
//
// All numbers are of the files without tests that a build for Linux on amd64 takes.
// A file whose first line says that it is generated may have any length.
// File A depends on file B of its package if A uses a package-level name, a method
// or a field that is declared in B. A use is an identifier: a field that is reached
// through an embedded one and a composite literal without keys count only for what
// they spell out. A component is a set of files all of which depend on each other,
// directly or through others (a strongly connected component). It always lies
// within one package, because packages cannot import each other in a circle.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "directory of the module")
	write := flag.Bool("write", false, "put the table into "+document)
	flag.Parse()
	if err := run(*root, *write); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

func run(root string, write bool) error {
	now, err := measure(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, filepath.FromSlash(document))
	text, err := os.ReadFile(path)
	if err != nil {
		fmt.Print(format(nil, now)) // a tree without the document
		return nil
	}
	before, _ := parse(string(text))
	table := format(before, now)
	fmt.Print(table)
	if !write {
		return nil
	}
	page, err := replace(string(text), table)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(page), 0o644)
}
