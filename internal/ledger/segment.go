package ledger

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// File is what the journal does with a segment; tests put a failing one behind.
type File interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// OpenFile opens a file of the journal, with mode 0600 where it is created.
func OpenFile(path string, flag int) (File, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err // not a typed nil
	}
	return newFile(f), nil
}

// lsn is a position in the journal: segment number and offset in it. Positions
// grow with every record. 0 is none, since a record never begins at offset 0.
type lsn uint64

func at(seg uint32, off int64) lsn { return lsn(seg)<<32 | lsn(off) }

func (p lsn) seg() uint32 { return uint32(p >> 32) }
func (p lsn) off() int64  { return int64(uint32(p)) }

// segment is one file of the journal.
type segment struct {
	seq  uint32
	size int64 // of header and whole records; where the next record goes
	refs int   // records of open requests in it
}

// The header of a segment: magic, format version, number, CRC-32C of these.
const (
	magic         = "sluicejl"
	formatVersion = 1
	headerLen     = 20
	maxSegment    = 1<<32 - 1 - 2*maxPayload // offsets are 32 bits
)

func header(seq uint32) []byte {
	b := append(make([]byte, 0, headerLen), magic...)
	b = binary.LittleEndian.AppendUint32(b, formatVersion)
	b = binary.LittleEndian.AppendUint32(b, seq)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// wholeHeader reports whether a header is as it was written.
func wholeHeader(b []byte) bool {
	return string(b[:8]) == magic && binary.LittleEndian.Uint32(b[16:]) == crc32.Checksum(b[:16], castagnoli)
}

// checkHeader says what is wrong with a whole header, nil if nothing.
func checkHeader(b []byte, seq uint32) error {
	switch {
	case !wholeHeader(b):
		return errors.New("its header is damaged")
	case binary.LittleEndian.Uint32(b[8:]) != formatVersion:
		return fmt.Errorf("it has format %d and this version of sluice reads format %d", binary.LittleEndian.Uint32(b[8:]), formatVersion)
	case binary.LittleEndian.Uint32(b[12:]) != seq:
		return fmt.Errorf("it says that it is segment %d: it was renamed", binary.LittleEndian.Uint32(b[12:]))
	}
	return nil
}

func segmentPath(dir string, seq uint32) string {
	return filepath.Join(dir, fmt.Sprintf("journal-%010d.log", seq))
}

// segments lists the numbers of the segments in dir, ascending. A gap is damage,
// since segments are deleted from the oldest on.
func segments(dir string) ([]uint32, error) {
	names, err := filepath.Glob(filepath.Join(dir, "journal-*.log"))
	if err != nil {
		return nil, err
	}
	var seqs []uint32
	for _, n := range names {
		var seq uint32
		if _, err := fmt.Sscanf(filepath.Base(n), "journal-%010d.log", &seq); err != nil || segmentPath(dir, seq) != n || seq == 0 {
			return nil, fmt.Errorf("%s is not a segment of the journal: move it out of the directory", n)
		}
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	for i := 1; i < len(seqs); i++ {
		if seqs[i] != seqs[i-1]+1 {
			return nil, fmt.Errorf("%s is missing, though there are older and newer segments: put it back from a copy; "+
				"or, to go on without its requests, move the older ones away", segmentPath(dir, seqs[i-1]+1))
		}
	}
	return seqs, nil
}

// DamageError is a journal segment that cannot be read: not a torn end, which is
// mended silently, but bytes that have changed since they were written.
type DamageError struct {
	File   string
	Offset int64 // of the first record that cannot be read
	What   string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("journal segment %s is damaged at byte %d: %s. Nothing was changed. Put the file back from a copy; "+
		"or, to give up this record and all after it in this file, keep a copy and run: truncate -s %d %s",
		e.File, e.Offset, e.What, e.Offset, e.File)
}

// scan reads the records of a segment in order and returns where the last whole
// one ends. visit's payload is valid until it returns. Where fill is nil a segment
// must consist of whole records to its end. Else it is the last one: its end may be
// torn, and fill is asked to close holes, each from one position to another.
func scan(f io.ReaderAt, path string, seq uint32, fill func(from, to int64) error, visit func(off int64, payload []byte) error) (int64, error) {
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, 1<<40), 256<<10)
	head, err := r.Peek(headerLen + 1)
	if err != nil && err != io.EOF {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	if fill != nil && (len(head) < headerLen || len(head) == headerLen && !wholeHeader(head)) {
		return 0, nil // died while it was created
	}
	if len(head) < headerLen {
		return 0, &DamageError{path, 0, "its header is cut off"}
	}
	if err := checkHeader(head[:headerLen], seq); err != nil {
		return 0, &DamageError{path, 0, err.Error()}
	}
	_, _ = r.Discard(headerLen)
	off := int64(headerLen)
	var buf []byte
	for {
		buf, err = readFrame(r, buf)
		if err == io.EOF && len(buf) == 0 {
			return off, nil
		}
		if err != nil && err != errRecord && err != io.EOF {
			return off, fmt.Errorf("read %s: %w", path, err)
		}
		if err == nil {
			if err := visit(off, buf[frameHeader:]); err == errRecord {
				return off, &DamageError{path, off, "the record is whole but does not decode"}
			} else if err != nil {
				return off, err
			}
			off += int64(len(buf))
			continue
		}
		if fill == nil {
			return off, &DamageError{path, off, "the record is not whole"}
		}
		next, lost, err := hole(f, off)
		switch {
		case err != nil:
			return off, fmt.Errorf("read %s: %w", path, err)
		case next == 0: // torn
			return off, nil
		case !lost:
			return off, &DamageError{path, off, fmt.Sprintf("the record is not whole, yet a whole one follows at byte %d", next)}
		}
		if err := fill(off, next); err != nil {
			return off, fmt.Errorf("fill a hole in %s: %w", path, err)
		}
		off = next
		r.Reset(io.NewSectionReader(f, off, 1<<40))
	}
}

// page is the least that a kernel writes at a time.
const page = 4 << 10

// hole looks at what follows a position where no whole record begins, and returns
// where the next one does, 0 if there is none. lost reports whether pages that never
// reached the disk are in between: the kernel writes them in any order, and one that
// is missing reads as zeros, from its start or from where the last fsync had come to
// on it. Whatever else is in between is damage.
func hole(f io.ReaderAt, off int64) (next int64, lost bool, err error) {
	if next, err = findFrame(f, off+1); err != nil || next == 0 {
		return 0, false, err
	}
	if next-off <= frameHeader {
		return next, false, nil
	}
	b := make([]byte, next-off)
	if _, err := f.ReadAt(b, off); err != nil {
		return 0, false, err
	}
	for from := off; !lost; {
		to := (from/page + 1) * page
		if to > next {
			break
		}
		// No record begins with a header of zeros. Fewer zeros may be one's own.
		lost = to-from >= frameHeader && len(bytes.TrimLeft(b[from-off:to-off], "\x00")) == 0
		from = to
	}
	return next, lost, nil
}

// fillHole writes records that say that nothing is there between two positions.
func fillHole(f File, from, to int64) error {
	for from < to {
		n := min(to-from, frameHeader+maxPayload)
		if rest := to - from - n; 0 < rest && rest <= frameHeader {
			n -= frameHeader + 1
		}
		b := append(beginFrame(nil, kindHole), make([]byte, n-frameHeader-1)...)
		if _, err := f.WriteAt(endFrame(b, 0), from); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// readFrame reads one frame. What cannot be one is errRecord, a cut one io.EOF
// with a buffer that is not empty, the clean end io.EOF with an empty one.
func readFrame(r *bufio.Reader, buf []byte) ([]byte, error) {
	head, err := r.Peek(frameHeader)
	if len(head) == 0 {
		return buf[:0], err
	}
	if len(head) < frameHeader {
		if err == io.EOF {
			err = errRecord
		}
		return buf[:0], err
	}
	n, ok := frameLen(head)
	if !ok {
		return buf[:0], errRecord
	}
	buf = slices.Grow(buf[:0], n)[:n]
	if _, err := io.ReadFull(r, buf); err != nil {
		if err == io.ErrUnexpectedEOF {
			err = errRecord
		}
		return buf, err
	}
	if binary.LittleEndian.Uint32(buf[4:]) != frameSum(buf) {
		return buf, errRecord
	}
	return buf, nil
}

// findFrame looks for a whole record that begins at from or later, and returns
// its offset, 0 if there is none. It tells damage from a torn end.
func findFrame(f io.ReaderAt, from int64) (int64, error) {
	rest, err := io.ReadAll(io.NewSectionReader(f, from, 1<<40))
	if err != nil {
		return 0, err
	}
	for i := range rest {
		if len(rest)-i <= frameHeader {
			break
		}
		if k := kind(rest[i+frameHeader]); k == 0 || k > lastKind {
			continue
		}
		if _, _, ok := cutFrame(rest[i:]); ok {
			return from + int64(i), nil
		}
	}
	return 0, nil
}

// frameAt reads the frame at a position of a segment, header included.
func frameAt(f io.ReaderAt, off int64, buf []byte) ([]byte, error) {
	buf = slices.Grow(buf[:0], frameHeader)[:frameHeader]
	if _, err := f.ReadAt(buf, off); err != nil {
		return nil, err
	}
	n, ok := frameLen(buf)
	if !ok {
		return nil, errRecord
	}
	buf = slices.Grow(buf[:0], n)[:n]
	if _, err := f.ReadAt(buf, off); err != nil {
		return nil, err
	}
	if _, _, ok := cutFrame(buf); !ok {
		return nil, errRecord
	}
	return buf, nil
}

// syncDir makes the creation and deletion of files in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
