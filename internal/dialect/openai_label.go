package dialect

import (
	"crypto/sha256"
	"encoding/hex"
)

// maxUser is the longest label of an end user that providers of the dialect take,
// in bytes.
const maxUser = 64

// userLabel is a label that fits: one that does not is replaced by its hash, which
// still tells users apart.
func userLabel(s string) string {
	if len(s) <= maxUser {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
