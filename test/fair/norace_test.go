//go:build !race

package fair

const race = false
