// Package process starts, signals and judges child processes.
package process

import "time"

// KillGrace is the time that a process gets between the request to end and its kill.
const KillGrace = 2 * time.Second
