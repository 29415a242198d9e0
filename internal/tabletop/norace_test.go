//go:build !race

package tabletop

const racing = false
