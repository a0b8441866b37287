package sites

import (
	"fmt"
	"strconv"
	"strings"
)

// expand appends the host names that a word stands for: "n7", or "n[3-8,12].lan" with one bracket. Leading zeros
// are kept: "n[08-10]" is n08, n09, n10. At most max names are returned.
func expand(word string, max int) ([]string, error) {
	before, rest, ok := strings.Cut(word, "[")
	if !ok {
		if !goodHost(word) {
			return nil, fmt.Errorf("host %q: want a name or an IP address", word)
		}
		return []string{word}, nil
	}
	list, after, ok := strings.Cut(rest, "]")
	if !ok || strings.ContainsAny(after, "[]") || list == "" {
		return nil, fmt.Errorf("hosts %q: want one range in brackets, such as n[1-4] or n[1,3-5]", word)
	}
	var names []string
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err := hostNumber(first)
		hi, err2 := hostNumber(last)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("hosts %q: %q is not a number or a range, such as 3-8", word, part)
		}
		if hi < lo {
			return nil, fmt.Errorf("hosts %q: range %q ends before it begins", word, part)
		}
		if hi-lo >= max-len(names) {
			return nil, fmt.Errorf("hosts %q: too many: a site has at most %d hosts, all sites %d", word, MaxHosts, MaxAllHosts)
		}
		width := 0
		if len(first) > 1 && first[0] == '0' {
			width = len(first)
		}
		for i := lo; i <= hi; i++ {
			name := fmt.Sprintf("%s%0*d%s", before, width, i, after)
			if !goodHost(name) {
				return nil, fmt.Errorf("hosts %q: %q is not a host name", word, name)
			}
			names = append(names, name)
		}
	}
	return names, nil
}

func hostNumber(s string) (int, error) {
	if s == "" || strings.Trim(s, "0123456789") != "" || len(s) > 9 {
		return 0, strconv.ErrSyntax
	}
	return strconv.Atoi(s)
}

// maxHostName is the longest host name in bytes (RFC 1035, Section 2.3.4).
const maxHostName = 255

// goodHost reports whether s can be a host name or an IP address. A name that begins with a dash would be an
// option of the remote shell.
func goodHost(s string) bool {
	if s == "" || len(s) > maxHostName || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if !isAlnum(c) && c != '-' && c != '.' && c != '_' && c != ':' {
			return false
		}
	}
	return true
}

func isAlnum(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// goodName reports whether s can be the name of a site, gateway or class.
func goodName(s string) bool {
	if s == "" || len(s) > MaxName || !isLetter(s[0]) {
		return false
	}
	for _, c := range []byte(s) {
		if !isAlnum(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
