package intercept

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// commandTime bounds a command.
const commandTime = 10 * time.Second

// Install takes the rules into the packet filter of the current network namespace, and returns what removes them.
// Those that a former process of the name has left behind are replaced; if that is still there it is an error. It
// needs root, and nft; mode TProxy needs ip, too.
func (r *Rules) Install() (remove func() error, err error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	// A socket in the abstract name space ends with its process, and is one of this network namespace.
	name := r.Name
	if r.Mode == TProxy {
		name = "weft_tproxy" // mark and routing table are the same for all
	}
	lock, err := net.Listen("unix", "@"+name)
	if err != nil {
		return nil, fmt.Errorf("rules %s: another gateway has them in this network namespace: %w", name, err)
	}
	defer func() {
		if err != nil {
			lock.Close()
		}
	}()
	if os.Geteuid() != 0 {
		return nil, errors.New("rules need root (CAP_NET_ADMIN): run as root, or print them with -tcp-rules and have them installed")
	}
	if said, err := command(r.NFT(), "nft", "-f", "-"); err != nil {
		return nil, fmt.Errorf("nft: %w: %s", err, said)
	}
	add, del := r.Routes()
	removeAll := func() error {
		_, err := command("", "nft", "delete", "table", "inet", r.Name)
		for _, c := range del {
			if said, e := command("", "ip", strings.Fields(c)...); e != nil {
				err = errors.Join(err, fmt.Errorf("ip %s: %w: %s", c, e, said))
			}
		}
		return err
	}
	for _, c := range del { // what a former process left, as often as it did
		for {
			if _, err := command("", "ip", strings.Fields(c)...); err != nil {
				break
			}
		}
	}
	for _, c := range add {
		if said, err := command("", "ip", strings.Fields(c)...); err != nil {
			return nil, errors.Join(fmt.Errorf("ip %s: %w: %s", c, err, said), removeAll())
		}
	}
	return func() error {
		defer lock.Close()
		return removeAll()
	}, nil
}

// command runs a command, and returns what it says.
func command(input, name string, args ...string) (said string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Stdin = strings.NewReader(input)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
