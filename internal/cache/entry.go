package cache

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"sluice"
	"sluice/internal/answer"
)

// Entry is a kept answer and what is known of it.
type Entry struct {
	Answer  *answer.Answer
	Request sluice.RequestID // that it was the answer to
	Stored  time.Time
	Expires time.Time

	// What it took, all attempts of that request together.
	Input, Output sluice.Tokens
	Cost          sluice.Nano
}

// format begins every sealed entry.
const format = 1

// errSealed is the error of bytes that are no entry of that key: damaged, changed,
// another's, or of another format.
var errSealed = errors.New("not a kept answer of this key")

// seal is an entry as stores keep it. Its authentication code covers the key, so that an
// entry is of no use in the place of another, and whatever happens to it where it is kept
// makes it a miss.
func (e *Entry) seal(secret []byte, k Key) []byte {
	b := make([]byte, 0, len(e.Answer.Body)+512)
	b = append(b, format)
	b = binary.AppendVarint(b, e.Stored.UnixMilli())
	b = binary.AppendVarint(b, e.Expires.UnixMilli())
	b = binary.AppendVarint(b, int64(e.Input))
	b = binary.AppendVarint(b, int64(e.Output))
	b = binary.AppendVarint(b, int64(e.Cost))
	b = binary.AppendUvarint(b, uint64(len(e.Request)))
	b = append(b, e.Request...)
	b = e.Answer.Append(b)
	return append(b, code(secret, k, b)...)
}

func code(secret []byte, k Key, b []byte) []byte {
	h := newFields(secret, "entry").hash()
	_, _ = h.Write(k[:])
	_, _ = h.Write(b)
	return h.Sum(nil)
}

// open reads an entry, whose answer refers to b.
func open(secret []byte, k Key, b []byte) (*Entry, error) {
	if len(b) < 1+sha256.Size || b[0] != format {
		return nil, errSealed
	}
	b, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if !hmac.Equal(mac, code(secret, k, b)) {
		return nil, errSealed
	}
	b = b[1:]
	var v [6]int64
	for i := range v {
		x, n := binary.Varint(b)
		if i == len(v)-1 {
			var u uint64
			u, n = binary.Uvarint(b)
			x = int64(u)
		}
		if n <= 0 {
			return nil, errSealed
		}
		v[i], b = x, b[n:]
	}
	if v[5] < 0 || v[5] > int64(len(b)) {
		return nil, errSealed
	}
	e := &Entry{
		Stored: time.UnixMilli(v[0]), Expires: time.UnixMilli(v[1]), Input: sluice.Tokens(v[2]), Output: sluice.Tokens(v[3]), Cost: sluice.Nano(v[4]),
		Request: sluice.RequestID(b[:v[5]]),
	}
	var err error
	if e.Answer, err = answer.Parse(b[v[5]:]); err != nil {
		return nil, errSealed
	}
	return e, nil
}

// share is a percentage of what an entry cost, rounded half up.
func share(cost sluice.Nano, percent int64) sluice.Nano {
	if percent <= 0 {
		return 0
	}
	whole, rest := cost/100, cost%100
	return whole*sluice.Nano(percent) + (rest*sluice.Nano(percent)+50)/100
}
