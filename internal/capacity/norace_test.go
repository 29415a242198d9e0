//go:build !race

package capacity

const racing = false
