//go:build race

package capacity

const racing = true
