//go:build !race

package acceptance

// race says that the detector runs.
const race = false
