package sctp

import (
	"fmt"
	"time"

	"github.com/weftstack/weft/sctp/internal/core"
	"github.com/weftstack/weft/sctp/internal/core/cc"
	"github.com/weftstack/weft/sctp/internal/core/tx"
)

// check returns why c cannot be used: ErrConfig.
//
// RFC 7829, Section 5, rule 1: "the PSMR MUST be set greater than or equal to the
// PFMR value", or without potentially failed paths to the PMR value;
// "Implementations MUST reject any other values of PSMR."
func (c *Config) check() error {
	if c.DSCP > maxDSCP {
		return fmt.Errorf("%w: DSCP is %d", ErrConfig, c.DSCP)
	}
	if c.Auth != nil {
		if err := c.Auth.core().Check(); err != nil {
			return fmt.Errorf("%w: Auth: %w", ErrConfig, err)
		}
	}
	least := c.PotentiallyFailedRetransmits
	if least < 0 {
		if least = c.PathMaxRetransmits; least == 0 {
			least = core.DefaultPathMaxRetrans
		}
	}
	if n := c.SwitchRetransmits; n != 0 && n < least || n < 0 {
		return fmt.Errorf("%w: SwitchRetransmits is %d, which is less than %d", ErrConfig, n, least)
	}
	return nil
}

// core translates a Config.
func (c *Config) core() core.Config {
	sack := c.SackDelay
	if sack > core.MaxSackDelay {
		sack = core.MaxSackDelay
	}
	rtoMin := c.RTOMin
	if rtoMin == 0 {
		rtoMin = defaultRTOMin
	}
	return core.Config{
		OutStreams: c.OutStreams, InStreams: c.InStreams, Adaptation: c.Adaptation,
		RTOInitial: c.RTOInitial, RTOMin: rtoMin, RTOMax: c.RTOMax,
		HBInterval: c.HeartbeatInterval, HBRetry: c.HeartbeatRetry, SackDelay: sack,
		AssocMaxRetrans: c.MaxRetransmits, PathMaxRetrans: c.PathMaxRetransmits, MaxInitRetrans: c.MaxInitRetransmits,
		CookieLife: c.CookieLifetime, SendBuffer: c.SendBuffer, RecvBuffer: c.RecvBuffer,
		Congestion: cc.Algorithm(c.Congestion), Scheduler: tx.Scheduler(c.Scheduler), Bundle: c.Bundle,
		NoInterleaving: c.NoInterleaving, NoPartialReliability: c.NoPartialReliability, NoECN: c.NoECN,
		NoReconfig: c.NoReconfig, NoRACK: c.NoRACK, NoPacing: c.NoPacing, MaxBurst: c.MaxBurst,
		SackEvery: c.SackEvery, MaxOutStreams: c.MaxOutStreams, ZeroChecksum: c.ZeroChecksum, ZeroChecksumLocal: c.ZeroChecksumLocal,
		MaxInitTimeout: c.MaxInitTimeout, NoFragmentation: c.NoFragmentation, DSCP: c.DSCP,
		Multipath: c.Multipath, PFMaxRetrans: c.PotentiallyFailedRetransmits,
		SwitchPrimary: c.SwitchPrimary, SwitchMaxRetrans: c.SwitchRetransmits,
		Auth: c.Auth.core(), ChangeAddrs: c.ChangeAddrs,
		TellDry:  c.SenderDry && c.OnNotify != nil,
		Discover: c.MTU == 0 && !c.NoPathMTUDiscovery,
		Pieces:   c.OnPiece != nil,
	}
}

// defaultRTOMin is below the second of RFC 9260, Section 16, which makes every
// loss that only the timer can repair cost a second; RFC 9260, Section 6.3.1,
// C6, gives the reason for the bound as clock granularity.
const defaultRTOMin = 200 * time.Millisecond
