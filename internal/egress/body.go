package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// body reads the body of an answer: by its length, in chunks, or to the end of the
// connection. net/http's own is passed by, since a stream goes through it once for
// each event and it has locks and layers for what does not happen here.
type body struct {
	r       *bufio.Reader
	chunked bool
	left    int64 // of the body, or of the chunk that is read; -1 to the end of the connection
	inside  bool  // a chunk has been read: its line end comes next
	last    bool  // the last chunk has come: trailers follow
	waste   int   // bytes of lines beyond what their chunks allow
	err     error // what follows; io.EOF once all has been read
}

// The bounds of what is no data: of each chunk's line, and of what exceeds it in
// lines and trailers together, in bytes.
const (
	chunkLine = 16
	maxWaste  = 16 << 10
)

// errChunk is the error of a body that is not in chunks as its head says.
var errChunk = errors.New("the chunks of the answer are malformed")

func newBody(r *bufio.Reader, h *answerHead) body {
	b := body{r: r, left: h.length}
	switch {
	case h.chunked:
		b.chunked, b.left = true, 0
	case b.left == 0:
		b.err = io.EOF
	}
	return b
}

// whole reports whether the body was read to an end that leaves the connection to
// the next answer.
func (b *body) whole() bool { return b.err == io.EOF && b.left == 0 }

// Read reads what has come, and waits only while nothing has.
func (b *body) Read(p []byte) (n int, err error) {
	for b.err == nil && n < len(p) {
		switch {
		case b.chunked && b.left == 0:
			if n > 0 && !b.ahead() {
				return n, nil
			}
			b.err = b.next()
		case n > 0 && b.r.Buffered() == 0:
			return n, nil
		default:
			n += b.some(p[n:])
		}
	}
	if n > 0 && b.err != io.EOF {
		return n, nil // an error is told by the next call
	}
	return n, b.err
}

// some reads once of what is left.
func (b *body) some(p []byte) int {
	if b.left >= 0 {
		p = p[:min(int64(len(p)), b.left)]
	}
	n, err := b.r.Read(p)
	if b.left >= 0 {
		b.left -= int64(n)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		} else if err == nil && b.left == 0 && !b.chunked {
			err = io.EOF
		}
	}
	b.err = err
	return n
}

// ahead reports whether next would not wait.
func (b *body) ahead() bool {
	have, _ := b.r.Peek(b.r.Buffered())
	if b.inside {
		have = have[min(2, len(have)):]
	}
	return bytes.IndexByte(have, '\n') >= 0
}

// next reads up to the next chunk's data, or a line of the trailers, of which
// nothing is kept. It is io.EOF behind the last.
func (b *body) next() error {
	if b.inside {
		b.inside = false
		if line, err := b.line(); err != nil {
			return err
		} else if len(line) > 0 {
			return errChunk
		}
	}
	line, err := b.line()
	if b.last && err == errChunk && bytes.HasSuffix(line, []byte{'\n'}) {
		line, err = bytes.TrimRight(line, "\r\n"), nil // all of the body has come: net/http does not mind either how trailers end
	}
	if err != nil {
		return err
	}
	if b.waste = max(b.waste+len(line)-chunkLine, 0); b.waste > maxWaste {
		return errChunk
	}
	if b.last {
		if len(line) == 0 {
			return io.EOF
		}
		return nil
	}
	b.left, err = chunkSize(line)
	b.inside, b.last = b.left > 0, b.left == 0
	return err
}

// line reads a line, which must end in CRLF: one that ends otherwise comes with errChunk.
// It is valid until the next read.
func (b *body) line() ([]byte, error) {
	line, err := b.r.ReadSlice('\n')
	switch {
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	case err == bufio.ErrBufferFull:
		return nil, errChunk
	case err != nil:
		return nil, err
	case len(line) < 2, bytes.IndexByte(line, '\r') != len(line)-2:
		return line, errChunk
	}
	return line[:len(line)-2], nil
}

// chunkSize reads the size that a chunk's line begins with. Extensions are skipped.
func chunkSize(line []byte) (n int64, err error) {
	if i := bytes.IndexByte(line, ';'); i >= 0 {
		line = line[:i]
	}
	line = bytes.TrimRight(line, " \t")
	if len(line) == 0 || len(line) > 15 {
		return 0, errChunk
	}
	for _, c := range line {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, errChunk
		}
		n = n<<4 | int64(c)
	}
	return n, nil
}
