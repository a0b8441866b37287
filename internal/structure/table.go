package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// document has the table in its last section.
const document = "docs/architecture.md"

// kind says how far a number may move away from the document.
type kind int

const (
	size    kind = iota // grows with what the package can do
	ceiling             // must not grow
)

// figure is a row of the table.
type figure struct {
	label string
	kind  kind
	of    func(room) int
	floor int // what is allowed in any case
	slack int // how much more than written is allowed: a fix or a comment takes some lines
}

var figures = []figure{
	{"Files", size, func(r room) int { return r.files }, 0, 0},
	{"Lines", size, func(r room) int { return r.lines }, 0, 0},
	{"Packages", size, func(r room) int { return r.packages }, 0, 0},
	{"Largest component, files", ceiling, func(r room) int { return r.component }, 0, 0},
	{"Largest package, lines", ceiling, func(r room) int { return r.largestPackage }, 8000, 100},
	{"Longest file, lines", ceiling, func(r room) int { return r.longestFile }, 500, 0},
	{"Methods of `core.Assoc`", ceiling, func(r room) int { return r.assocMethods }, 0, 0},
}

// cells maps the label of a row to its numbers.
type cells map[string][]int

// values returns the numbers of a figure, a room each.
func (f figure) values(measured []room) []int {
	var v []int
	for _, r := range measured {
		v = append(v, f.of(r))
	}
	return v
}

// format returns the table. Without before, both columns are what was measured.
func format(before cells, now []room) string {
	var b strings.Builder
	b.WriteString("|")
	for _, r := range now {
		fmt.Fprintf(&b, " | %s before | %s now", r.name, r.name)
	}
	b.WriteString(" |\n|---" + strings.Repeat("|---:|---:", len(now)) + "|\n")
	for _, f := range figures {
		b.WriteString("| " + f.label)
		for i, v := range f.values(now) {
			was := v
			if row := before[f.label]; i < len(row) {
				was = row[i]
			}
			fmt.Fprintf(&b, " | %s | %s", number(was), number(v))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// number writes n as the table has it; a room may lack what is counted.
func number(n int) string {
	if n == 0 {
		return "–"
	}
	return strconv.Itoa(n)
}

// tableText matches the table within the document.
var tableText = regexp.MustCompile(`(?m)^\| \| mpi before .*\n(\|.*\n)+`)

// parse returns the numbers of the document's table: what was counted before the
// packages were divided, and the ceilings that hold now.
func parse(page string) (before, now cells) {
	before, now = cells{}, cells{}
	lines := strings.Split(tableText.FindString(page), "\n")
	for _, line := range lines[min(2, len(lines)):] { // after the head
		c := strings.Split(strings.Trim(line, "| "), " | ")
		for i := 1; i+1 < len(c); i += 2 {
			was, _ := strconv.Atoi(c[i])
			is, _ := strconv.Atoi(c[i+1])
			before[c[0]] = append(before[c[0]], was)
			now[c[0]] = append(now[c[0]], is)
		}
	}
	return before, now
}

// replace returns the page with table in the place of its own.
func replace(page, table string) (string, error) {
	at := tableText.FindStringIndex(page)
	if at == nil {
		return "", errors.New(document + " has no table of the structure")
	}
	return page[:at[0]] + table + page[at[1]:], nil
}

// stale reports whether got is so far from what the document says that the table
// should be written again: a change does not have to touch it for a few lines.
func (f figure) stale(got, written int) bool { return 10*max(got-written, written-got) > written }
