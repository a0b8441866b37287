package core

import "github.com/weftstack/weft/sctp/internal/core/feature"

// localFeatures returns what cfg lets us announce.
func localFeatures(cfg *Config) feature.Set {
	f := feature.ExtensionList
	if !cfg.NoPartialReliability {
		f |= feature.PartialReliability
	}
	if !cfg.NoInterleaving {
		f |= feature.IData
	}
	if f.Has(feature.PartialReliability | feature.IData) {
		f |= feature.IForwardTSN
	}
	if !cfg.NoECN {
		f |= feature.ECN
	}
	if !cfg.NoReconfig {
		f |= feature.Reconfig
	}
	if cfg.ZeroChecksum {
		f |= feature.ZeroChecksum
	} else if cfg.ZeroChecksumLocal {
		f |= feature.ZeroChecksumLocal
	}
	if cfg.Auth != nil {
		f |= feature.Auth
	}
	if cfg.ChangeAddrs {
		f |= feature.Asconf
		if cfg.Auth == nil {
			f |= feature.AsconfOpen
		}
	}
	return f
}

// Extensions are the features that both ends announced.
type Extensions struct {
	PartialReliability, Interleaving, Reconfig, Authentication, AddressChange, ECN, ZeroChecksum bool
}
