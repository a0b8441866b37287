package mpi

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
)

// card is what a rank tells the others about itself through the launcher.
type card struct {
	Transport string `json:"t"`
	Streams   int    `json:"s"`
	Window    int64  `json:"w"` // bytes of eager messages it takes from each peer
	Host      string `json:"h"` // equal for ranks that share memory
	Addr      string `json:"a"` // for the transport
	CPUs      cpuSet `json:"p"` // where it may run

	Memory *shmCard `json:"m,omitempty"` // for ranks of the same host
}

// keyName is where rank 0 leaves the secret of the job.
const keyName = "weft-key"

func cardName(rank int) string { return "weft-card-" + strconv.Itoa(rank) }

// String encodes c; parseCard reads it back.
func (c card) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return string(b)
}

func parseCard(s string) (card, error) {
	var c card
	err := json.Unmarshal([]byte(s), &c)
	return c, err
}

// newJobKey returns a fresh secret.
func newJobKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// hostID names the host: see World.host.
func hostID() string {
	name, err := os.Hostname()
	if err != nil {
		return "?"
	}
	return name
}
