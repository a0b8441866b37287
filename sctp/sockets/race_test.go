//go:build race

package sockets

const RaceEnabled = true
