//go:build race

package tabletop

const racing = true
