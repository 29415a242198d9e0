package ledger

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"
	"unicode/utf8"

	"sluice"
)

// The bounds of what is recorded. Longer strings are cut, a longer Detail is
// left out.
const (
	MaxField  = 4 << 10  // of any string of a record, in bytes
	MaxDetail = 64 << 10 // of Entry.Detail, in bytes
)

// maxPayload bounds one record: far above what the fields can add up to.
const maxPayload = 512 << 10

// frameHeader is length and CRC, each 32 bits little-endian, before a payload.
const frameHeader = 8

// kind is the first byte of a payload. Kinds are appended to, never renumbered.
type kind byte

const (
	kindReserve kind = iota + 1
	kindDispatch
	kindCheckpoint
	kindEntry
	kindRelease
	kindMark // everything before a position is in the sink
	kindHole // what was here never reached the disk
	lastKind = kindHole
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errRecord = errors.New("record does not decode")

// beginFrame makes room for a frame's header and writes the payload's kind.
func beginFrame(b []byte, k kind) []byte {
	return append(b, 0, 0, 0, 0, 0, 0, 0, 0, byte(k))
}

// endFrame fills the header of the frame that begins at start.
func endFrame(b []byte, start int) []byte {
	f := b[start:]
	binary.LittleEndian.PutUint32(f, uint32(len(f)-frameHeader))
	binary.LittleEndian.PutUint32(f[4:], frameSum(f))
	return b
}

// frameSum is the CRC of a whole frame: of its length and payload.
func frameSum(f []byte) uint32 {
	return crc32.Update(crc32.Checksum(f[:4], castagnoli), castagnoli, f[frameHeader:])
}

// cutFrame splits a whole and valid frame off b. ok is false if b does not begin
// with one.
func cutFrame(b []byte) (payload, rest []byte, ok bool) {
	n, ok := frameLen(b)
	if !ok || n > len(b) || binary.LittleEndian.Uint32(b[4:]) != frameSum(b[:n]) {
		return nil, b, false
	}
	return b[frameHeader:n], b[n:], true
}

// frameLen is the length of the frame that b begins with, header included, if
// the header is there and sane.
func frameLen(b []byte) (int, bool) {
	if len(b) < frameHeader {
		return 0, false
	}
	n := binary.LittleEndian.Uint32(b)
	return frameHeader + int(n), 1 <= n && n <= maxPayload
}

func appendInt(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

func appendText[S ~string](b []byte, s S) []byte {
	if len(s) > MaxField {
		s = S(clip(string(s), MaxField))
	}
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// clip cuts s to at most n bytes, between characters.
func clip(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// Times are kept to the microsecond, as the store does.
func appendTime(b []byte, t time.Time) []byte { return appendInt(b, t.UnixMicro()) }

func appendSpan(b []byte, d time.Duration) []byte { return appendInt(b, d.Microseconds()) }

func appendLabels(b []byte, ls []sluice.Label) []byte {
	ls = ls[:min(len(ls), sluice.MaxLabels)]
	b = binary.AppendUvarint(b, uint64(len(ls)))
	for _, l := range ls {
		b = appendText(b, l.Key)
		b = appendText(b, l.Value)
	}
	return b
}

func appendUsage(b []byte, u *sluice.Usage) []byte {
	for _, v := range [...]sluice.Tokens{
		u.Input, u.CacheRead, u.CacheWrite, u.CacheWrite1h, u.AudioInput, u.Output, u.Reasoning, u.AudioOutput,
	} {
		b = appendInt(b, int64(v))
	}
	b = appendInt(b, u.ToolCalls)
	b = appendInt(b, u.WebSearches)
	b = appendText(b, u.ServiceTier)
	b = append(b, byte(u.Source))
	return appendBool(b, u.Anomalous)
}

// decoder reads a payload. After the first field that is not there it reads
// zeros and bad is set. It takes the payload as one string, which the texts
// share: one allocation per record.
type decoder struct {
	s   string
	bad bool
}

func (d *decoder) byte() byte {
	if len(d.s) == 0 {
		d.bad = true
		return 0
	}
	c := d.s[0]
	d.s = d.s[1:]
	return c
}

func (d *decoder) uint() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		c := d.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	d.bad = true
	return 0
}

func (d *decoder) int() int64 {
	u := d.uint()
	return int64(u>>1) ^ -int64(u&1)
}

func (d *decoder) text() string {
	n := d.uint()
	if n > uint64(len(d.s)) {
		d.bad = true
		return ""
	}
	s := d.s[:n]
	d.s = d.s[n:]
	return s
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) time() time.Time { return time.UnixMicro(d.int()).UTC() }

func (d *decoder) span() time.Duration { return time.Duration(d.int()) * time.Microsecond }

func (d *decoder) labels() []sluice.Label {
	n := d.uint()
	if n == 0 {
		return nil
	}
	if n > sluice.MaxLabels {
		d.bad = true
		return nil
	}
	ls := make([]sluice.Label, n)
	for i := range ls {
		ls[i] = sluice.Label{Key: d.text(), Value: d.text()}
	}
	return ls
}

func (d *decoder) usage() (u sluice.Usage) {
	for _, p := range [...]*sluice.Tokens{
		&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheWrite1h, &u.AudioInput, &u.Output, &u.Reasoning, &u.AudioOutput,
	} {
		*p = sluice.Tokens(d.int())
	}
	u.ToolCalls, u.WebSearches = d.int(), d.int()
	u.ServiceTier = d.text()
	u.Source = sluice.UsageSource(d.byte())
	u.Anomalous = d.bool()
	return u
}

// end reports whether the payload was read whole and to its end.
func (d *decoder) end() error {
	if d.bad || d.s != "" {
		return errRecord
	}
	return nil
}
