package pmi

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// MaxValue bounds what one Put may store, in bytes before encoding.
const MaxValue = 1 << 20

// valueCode writes arbitrary bytes with characters that PMI-1 lets through.
var valueCode = base64.RawURLEncoding

// partKey names the i-th part of a value that was split; part 0 has the plain
// name.
func partKey(key string, i int) string {
	if i == 0 {
		return key
	}
	return key + "." + strconv.Itoa(i)
}

// encodeValue splits value into parts of at most limit characters. The first
// part begins with the number of parts and a colon.
func encodeValue(value string, limit int) ([]string, error) {
	if len(value) > MaxValue {
		return nil, fmt.Errorf("pmi: value of %d bytes, more than %d", len(value), MaxValue)
	}
	const head = len("100000:")
	if limit <= head {
		return nil, fmt.Errorf("%w: launcher takes values of %d characters", ErrProtocol, limit)
	}
	text := valueCode.EncodeToString([]byte(value))
	var parts []string
	for first := true; first || text != ""; first = false {
		room := limit
		if first {
			room -= head
		}
		n := min(room, len(text))
		parts, text = append(parts, text[:n]), text[n:]
	}
	parts[0] = strconv.Itoa(len(parts)) + ":" + parts[0]
	return parts, nil
}

// splitCount takes the number of parts off the first part of a value.
func splitCount(first string) (n int, text string, err error) {
	count, text, ok := strings.Cut(first, ":")
	n, convErr := strconv.Atoi(count)
	if !ok || convErr != nil || n < 1 || n > MaxValue {
		return 0, "", fmt.Errorf("%w: stored value %q has no part count", ErrProtocol, clip(first))
	}
	return n, text, nil
}
