// Package affinity tells and sets on which processors of the machine threads may run.
package affinity
