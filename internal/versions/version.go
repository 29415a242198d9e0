package versions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice"
)

// Bounds of what the store keeps. The newest version is kept however large it is.
const (
	MaxStored      = 500      // versions
	MaxStoredBytes = 64 << 20 // of their contents
)

// Source is what put a version in force.
type Source string

// The sources.
const (
	File     Source = "file"     // the configuration file was read
	API      Source = "api"      // routing was changed through the admin API
	Rollback Source = "rollback" // an earlier version was put in force again
)

// Content is what a configuration is made of.
type Content struct {
	File string `json:"file"` // name of the file that Text is from
	// FileHash is HashOf the file's bytes, secrets included.
	FileHash string `json:"file_hash"`
	// Text is the file without the secrets that stood in it in the open. Empty
	// where it is not kept: nothing can be made of it any more.
	Text    string `json:"text"`
	Changes string `json:"changes,omitempty"` // JSON of what was changed through the API; empty if nothing was
}

// Version is one configuration and how it came to be in force.
type Version struct {
	ID     string    `json:"id"`     // unique
	Number int64     `json:"number"` // from 1; 0 while the store has not taken it
	Hash   string    `json:"hash"`   // of what it means; recorded with every request
	At     time.Time `json:"at"`     // when it was put in force
	Author string    `json:"author"`
	Reason string    `json:"reason,omitempty"`
	Source Source    `json:"source"`
	Of     int64     `json:"of,omitempty"` // of a rollback, the version that it went back to; 0 if that had no number
	Content
}

// Size is what the store counts a version's content as, in bytes.
func (v *Version) Size() int64 { return int64(len(v.Text) + len(v.Changes)) }

// Store keeps versions.
type Store interface {
	// AddVersion adds a version and returns its number. One whose ID is there
	// already, or that was read from a file and has the hash of the newest, is not
	// added: its number is that one's.
	AddVersion(ctx context.Context, v Version) (int64, error)
	// ListVersions lists versions below a number, newest first, without their Text and
	// Changes; before 0 begins with the newest.
	ListVersions(ctx context.Context, before int64, limit int) ([]Version, error)
	// FindVersion finds a version by its number, or the newest with a hash that begins
	// with Hash; KindNotFound if there is none.
	FindVersion(ctx context.Context, r Ref) (Version, error)
}

// Ref names a version: by number, or by the beginning of its hash.
type Ref struct {
	Number int64
	Hash   string // where Number is 0
}

// minHash is the fewest digits of a hash that name a version.
const minHash = 6

// hashDigits is how long a hash is: a number of as many digits is a hash.
const hashDigits = 12

// ParseRef reads a version's number, such as 7, or at least six digits of its hash.
func ParseRef(s string) (Ref, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 && len(s) < hashDigits {
		return Ref{Number: n}, nil
	}
	if len(s) >= minHash && len(s) <= hashDigits && strings.Trim(s, "0123456789abcdef") == "" {
		return Ref{Hash: s}, nil
	}
	e := sluice.Invalid("version", "%q is neither a number nor the beginning of a hash", s)
	e.Hint = "list them with sluice route versions; of a hash at least six digits are needed"
	return Ref{}, e
}

func (r Ref) String() string {
	if r.Number > 0 {
		return strconv.FormatInt(r.Number, 10)
	}
	return r.Hash
}

// Names reports whether the ref means the version.
func (r Ref) Names(v *Version) bool {
	if r.Number > 0 {
		return v.Number == r.Number
	}
	return r.Hash != "" && strings.HasPrefix(v.Hash, r.Hash)
}

// Missing is the error for a version that there is not.
func Missing(r Ref) error {
	return &sluice.Error{
		Kind: sluice.KindNotFound, Reason: sluice.NotFound, Msg: fmt.Sprintf("there is no version %s", r),
		Hint: "list them with sluice route versions; the oldest are not kept for ever",
	}
}

// HashOf identifies the bytes of a file: 12 hexadecimal digits.
func HashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// Bounds of what people write, in bytes.
const (
	MaxAuthor = 128
	MaxReason = 1024
)

// Word checks a line that a person wrote about a change, and takes the space around
// it away. Param is the field that it stands in.
func Word(param, s string, most int) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) > most {
		return "", sluice.Invalid(param, "has %d bytes: use at most %d", len(s), most)
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return "", sluice.Invalid(param, "has characters that do not stand in one line of text")
	}
	return s, nil
}
