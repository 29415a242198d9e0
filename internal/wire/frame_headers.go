package wire

import (
	"encoding/binary"
	"errors"
)

// frameHeaders is what of a frame's headers is understood. The values are slices of
// the frame; nil if left out.
type frameHeaders struct {
	message   []byte // :message-type
	event     []byte // :event-type
	exception []byte // :exception-type
	code      []byte // :error-code
	text      []byte // :error-message
}

// Types of a header's value that are of interest. Of the others only the size is.
const (
	headerString = 7
)

// headerSizes is how many bytes a value of each type has; -1 where two bytes before
// it say.
var headerSizes = [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16}

var errHeaders = errors.New("its headers end in the middle of one, or have a type that there is not")

// readFrameHeaders reads the headers of a frame.
func readFrameHeaders(b []byte) (h frameHeaders, err error) {
	for len(b) > 0 {
		n := int(b[0])
		if n == 0 || len(b) < n+2 {
			return h, errHeaders
		}
		name, kind := b[1:1+n], int(b[1+n])
		b = b[n+2:]
		if kind >= len(headerSizes) {
			return h, errHeaders
		}
		size := headerSizes[kind]
		if size < 0 {
			if len(b) < 2 {
				return h, errHeaders
			}
			size = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < size {
			return h, errHeaders
		}
		if kind == headerString {
			h.set(string(name), b[:size:size])
		}
		b = b[size:]
	}
	return h, nil
}

func (h *frameHeaders) set(name string, value []byte) {
	switch name {
	case ":message-type":
		h.message = value
	case ":event-type":
		h.event = value
	case ":exception-type":
		h.exception = value
	case ":error-code":
		h.code = value
	case ":error-message":
		h.text = value
	}
}
