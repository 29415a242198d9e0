//go:build !linux

package egress

// writeNow writes nothing: all is written by who writes the rest.
func (l *link) writeNow([][]byte) int { return 0 }
