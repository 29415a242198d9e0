//go:build !unix

package cli

import "io"

// terminalOf knows no terminal here: what is written is plain.
func terminalOf(io.Writer) (columns int, ok bool) { return 0, false }
