// Package webrtctest runs the tests of pion/webrtc and pion/datachannel with weft below.
package webrtctest

import (
	_ "github.com/pion/datachannel" // its tests
	_ "github.com/pion/webrtc/v4"   // its tests
)
