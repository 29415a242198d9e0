//go:build race

package calibrate

const racing = true
