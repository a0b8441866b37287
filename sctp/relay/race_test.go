//go:build race

package relay_test

const raceEnabled = true

// conserveMessages is how many messages each flow of TestConservation has.
const conserveMessages = 12
