//go:build !race

package rehearsal

const race = false
