// What the C programs share: clock, processor time, and round trip times.

#ifndef PEERS_COMMON_H
#define PEERS_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now_s(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static double cpu_s(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

// The round trips since the last reset, in microseconds; the first MAX_TRIPS.
#define MAX_TRIPS (4 << 20)
static float *trip_us;
static size_t trips;

static void trip_add(double us) {
	if (!trip_us)
		trip_us = malloc(MAX_TRIPS * sizeof *trip_us);
	if (trip_us && trips < MAX_TRIPS)
		trip_us[trips++] = us;
}

static int trip_less(const void *a, const void *b) {
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

// trip_at returns a quantile of the trips; call trip_sort before.
static void trip_sort(void) {
	if (trips)
		qsort(trip_us, trips, sizeof *trip_us, trip_less);
}

static double trip_at(double q) { return trips ? trip_us[(size_t)(q * (trips - 1))] : 0; }

#endif
