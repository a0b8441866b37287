// Package bench has what the experiments of this repository share: medians and
// their spread, how busy the machine was with other things, a description of it,
// sections of documents that a command writes, and plots.
package bench
