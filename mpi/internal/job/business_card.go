package job

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/weftstack/weft/mpi/internal/cpuset"
	"github.com/weftstack/weft/mpi/internal/transport/shm"
)

// businessCard is what a rank publishes through the launcher for the others (PMI calls it a business card): how to
// connect to it, and the options in which the ranks have to agree.
type businessCard struct {
	Transport string     `json:"t"`
	Streams   int        `json:"s"`
	Window    int64      `json:"w"`              // bytes of eager messages it takes from each peer
	Host      string     `json:"h"`              // equal for ranks that share memory
	Addr      string     `json:"a"`              // for the transport
	CPUs      cpuset.Set `json:"p"`              // where it may run
	Site      string     `json:"site,omitempty"` // of the site that the host is at

	Memory *shm.Segment `json:"m,omitempty"` // for ranks of the same host
}

// jobKeyName is the key under which rank 0 publishes the secret of the job.
const jobKeyName = "weft-key"

func businessCardKey(rank int) string { return "weft-card-" + strconv.Itoa(rank) }

// String encodes c; parseBusinessCard reads it back.
func (c businessCard) String() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return string(b)
}

func parseBusinessCard(s string) (businessCard, error) {
	var c businessCard
	err := json.Unmarshal([]byte(s), &c)
	return c, err
}

// newJobKey returns a fresh secret.
func newJobKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
