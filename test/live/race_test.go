//go:build race

package live

const racing = true
