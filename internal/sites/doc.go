// Package sites reads the sites file: which hosts form a site, which gateways carry messages between sites, over
// which legs, and with which keys. docs/gateways.md describes the file.
//
// Gateways, launchers and processes read the same file. [Parse] and [Read] read no keys, so that a process needs no
// access to the keys of legs; [File.JobsKey] and [Leg.Key] do. What a launcher tells a process about its place
// is a [Process].
package sites
