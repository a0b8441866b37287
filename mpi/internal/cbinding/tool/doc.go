// Package tool has the tool information interface of C (MPI-5.0, Section 15.3): control and performance
// variables, categories, and events, of which there are none.
package tool
