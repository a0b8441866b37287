// Messages: sequence number in the stream, length, then a pattern of period 251
// that begins where the sequence number says.

#include "peer.h"

#include <string.h>

#define PERIOD 251
static uint8_t pattern[PERIOD * 512];

void pattern_init(void) {
	uint32_t x = 1;
	for (int i = 0; i < PERIOD; i++) {
		x = x * 1664525u + 1013904223u;
		pattern[i] = x >> 24;
	}
	for (size_t i = PERIOD; i < sizeof pattern; i++)
		pattern[i] = pattern[i - PERIOD];
}

static void put32(uint8_t *p, uint32_t v) {
	v = htonl(v);
	memcpy(p, &v, 4);
}

uint32_t get32(const uint8_t *p) {
	uint32_t v;
	memcpy(&v, p, 4);
	return ntohl(v);
}

void fill(uint8_t *p, size_t n, uint32_t seq) {
	put32(p, seq);
	put32(p + 4, n);
	for (size_t at = 8; at < n;) {
		size_t from = (seq + at) % PERIOD, k = sizeof pattern - from;
		if (k > n - at)
			k = n - at;
		memcpy(p + at, pattern + from, k);
		at += k;
	}
}

const char *check(const uint8_t *p, size_t n) {
	if (n < 8 || get32(p + 4) != n)
		return "length";
	uint32_t seq = get32(p);
	for (size_t at = 8; at < n;) {
		size_t from = (seq + at) % PERIOD, k = sizeof pattern - from;
		if (k > n - at)
			k = n - at;
		if (memcmp(p + at, pattern + from, k))
			return "bytes";
		at += k;
	}
	return NULL;
}
