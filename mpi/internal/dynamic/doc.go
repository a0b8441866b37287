// Package dynamic connects groups of processes that were started separately: ports, the messages that
// two groups exchange by way of their roots, and what is known of jobs that are being started. It
// reaches the ranks of its own group through the interface Comm.
package dynamic
