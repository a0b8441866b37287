//go:build !race

package relay_test

const raceEnabled = false

// conserveMessages is how many messages each flow of TestConservation has.
const conserveMessages = 60
